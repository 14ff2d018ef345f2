import { useId, useState } from "react";
import { Icon } from "../ui/Icon";
import { visible } from "../ui/visible";
import { plural } from "../ui/words";
import type { Pair } from "./form";

interface Words {
  /** What one of them is called. */
  one: string;
  name: string;
  text: string;
  /** What a new one is named. */
  fresh: string;
  add: string;
}

/** Named texts: a row each, which opens to its name and its text. */
export function Pairs({
  value,
  labelledBy,
  words,
  rows,
  onChange,
}: {
  value: readonly Pair[];
  labelledBy: string;
  words: Words;
  rows: number;
  onChange: (value: Pair[]) => void;
}) {
  const [open, setOpen] = useState<number | null>(null);
  const replace = (index: number, ...pairs: Pair[]) => onChange(value.toSpliced(index, 1, ...pairs));
  return (
    <div className="pairs">
      {value.length > 0 && (
        <ul className="card picks" aria-labelledby={labelledBy}>
          {value.map((pair, index) => (
            // They have no other name than the one that is being typed.
            <li key={index}>
              <One
                pair={pair}
                words={words}
                rows={rows}
                isOpen={open === index}
                onToggle={() => setOpen(open === index ? null : index)}
                onChange={(changed) => replace(index, changed)}
                onRemove={() => {
                  setOpen(null);
                  replace(index);
                }}
              />
            </li>
          ))}
        </ul>
      )}
      <button
        type="button"
        className="btn dense"
        onClick={() => {
          onChange([...value, [freshName(value, words.fresh), ""]]);
          setOpen(value.length);
        }}
      >
        <Icon name="plus" />
        {words.add}
      </button>
    </div>
  );
}

function freshName(value: readonly Pair[], wanted: string): string {
  const taken = new Set(value.map(([name]) => name));
  if (!taken.has(wanted)) return wanted;
  const [stem = wanted, ending] = wanted.split(".");
  for (let number = 2; ; number += 1) {
    const name = `${stem}-${number}${ending ? `.${ending}` : ""}`;
    if (!taken.has(name)) return name;
  }
}

function One({
  pair: [name, text],
  words,
  rows,
  isOpen,
  onToggle,
  onChange,
  onRemove,
}: {
  pair: Pair;
  words: Words;
  rows: number;
  isOpen: boolean;
  onToggle: () => void;
  onChange: (pair: Pair) => void;
  onRemove: () => void;
}) {
  const id = useId();
  return (
    <div className="pair">
      <div className="line">
        <button type="button" className="line grow pair-head" aria-expanded={isOpen} aria-controls={id} onClick={onToggle}>
          <Icon name={isOpen ? "down" : "right"} />
          <span className="mono cut">{visible(name) || <span className="is-wait">no name</span>}</span>
          <span className="xs faint end">{plural([...text].length, "character")}</span>
        </button>
        <button type="button" className="btn plain dense square" aria-label={`Remove ${name || words.one}`} onClick={onRemove}>
          <Icon name="trash" />
        </button>
      </div>
      <div id={id} hidden={!isOpen} className="pair-body">
        {isOpen && (
          <>
            <div className="field">
              <label htmlFor={`${id}-name`}>{words.name}</label>
              <input id={`${id}-name`} className="input mono" autoComplete="off" spellCheck={false} value={name} onChange={(event) => onChange([event.target.value, text])} />
            </div>
            <div className="field">
              <label htmlFor={`${id}-text`}>{words.text}</label>
              <textarea id={`${id}-text`} className="input" rows={rows} value={text} onChange={(event) => onChange([name, event.target.value])} />
            </div>
          </>
        )}
      </div>
    </div>
  );
}
