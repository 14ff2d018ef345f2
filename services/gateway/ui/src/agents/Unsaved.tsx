import type { AgentView } from "../contracts";
import type { Draft, Field, Value } from "./draft";
import { changes } from "./draft";
import { hunks, lineDiff } from "./diff";
import { LABELS, inWords } from "./labels";

const TEXTS: readonly Field[] = ["instructions", "delegationDescription"];

/** What saving would change, line by line. */
export function Unsaved({ stored, draft }: { stored: AgentView; draft: Draft }) {
  const changed = changes(draft, stored);
  if (changed.length === 0) return null;
  return (
    <aside className="unsaved" aria-label="Unsaved changes">
      <h2>Not saved yet</h2>
      <p className="small dim">Applies to the next run. Runs in progress keep what they began with.</p>
      <div className="diff">
        {changed.map((field) => (
          <Changed key={field} field={field} before={stored[field]} after={draft[field]?.value ?? null} />
        ))}
      </div>
    </aside>
  );
}

function Changed({ field, before, after }: { field: Field; before: Value; after: Value }) {
  if (TEXTS.includes(field)) {
    return hunks(lineDiff(String(before), String(after))).map(({ at, lines }) => (
      <div key={at}>
        <div className="at">
          {LABELS[field]}, line {at}
        </div>
        {lines.map(({ kind, text }, index) => (
          <Line key={index} kind={kind} text={text} />
        ))}
      </div>
    ));
  }
  const added = field === "tools" ? listed(after, before) : [];
  const taken = field === "tools" ? listed(before, after) : [];
  const isMoved = field === "tools" && added.length + taken.length === 0;
  return (
    <div>
      <div className="at">{LABELS[field]}</div>
      {field === "tools" && !isMoved ? (
        <>
          {taken.map((name) => (
            <Line key={name} kind="del" text={name} />
          ))}
          {added.map((name) => (
            <Line key={name} kind="add" text={name} />
          ))}
        </>
      ) : (
        <>
          <Line kind="del" text={inWords(field, before)} />
          <Line kind="add" text={inWords(field, after)} />
        </>
      )}
    </div>
  );
}

function listed(of: Value, but: Value): string[] {
  return Array.isArray(of) && Array.isArray(but) ? of.filter((name) => !but.includes(name)) : [];
}

/** Its sign and its element say what the colour says. */
function Line({ kind, text }: { kind: "same" | "del" | "add"; text: string }) {
  if (kind === "same") return <div>{`  ${text}`}</div>;
  return kind === "del" ? <del>{`− ${text}`}</del> : <ins>{`+ ${text}`}</ins>;
}
