import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { modelsQuery } from "../app/queries";
import { type AgentRuntimeView, agentRuntimeFields } from "../contracts";
import { FieldRow } from "../editing/FieldRow";
import { Segments } from "../ui/Segments";
import { duration } from "../ui/words";
import { type Draft, bounds, changes, conflicts, errors, keepMine, textOf, type, without } from "./draft";
import { setDraft } from "./draftStore";
import { CHOICES, type Field, LABELS } from "./fields";

/** Settings of the agent runtime as fields of a form; what is typed goes into the draft. */
export function RuntimeFields({
  fields,
  stored,
  draft,
  refused,
}: {
  fields: readonly Field[];
  stored: AgentRuntimeView;
  draft: Draft;
  /** What the server did not accept of the last save, by field. */
  refused: Partial<Record<Field, string>>;
}) {
  const wrong = { ...refused, ...errors(draft) };
  const changed = changes(draft, stored);
  const disputed = conflicts(draft, stored);
  return fields.map((field) => (
    <SettingRow
      key={field}
      field={field}
      stored={stored}
      text={draft[field]?.text ?? textOf(stored[field])}
      error={wrong[field]}
      isChanged={changed.includes(field)}
      isDisputed={disputed.includes(field)}
    />
  ));
}

interface RowProps {
  field: Field;
  stored: AgentRuntimeView;
  text: string;
  error: string | undefined;
  isChanged: boolean;
  isDisputed: boolean;
}

function SettingRow({ field, stored, text, error, isChanged, isDisputed }: RowProps) {
  const id = useId();
  const spec = agentRuntimeFields[field];
  const { label, meaning = spec.meaning } = LABELS[field];
  const standard = textOf(spec.default);
  const change = (next: string) => setDraft((draft) => type(draft, field, next, stored));
  return (
    <FieldRow
      label={label}
      {...(spec.choices ? { labelId: id } : { labelFor: id })}
      beside={bounds(spec)}
      hint={
        <>
          {meaning.replace(/\bnull:/, "empty:")}{" "}
          {text === standard ? (
            <span className="faint">{spec.choices ? "" : standard ? "This is the default." : "Empty is the default."}</span>
          ) : (
            <button type="button" className="link" onClick={() => change(standard)}>
              {standard === "" ? "Back to empty, the default" : standard.length > 24 ? "Back to the default" : `Back to ${CHOICES[standard] ?? standard}, the default`}
            </button>
          )}
        </>
      }
      error={error}
      isChanged={isChanged}
      dispute={
        isDisputed
          ? {
              stored: textOf(stored[field]) || "empty",
              mine: text || "empty",
              onKeepMine: () => setDraft((draft) => keepMine(draft, field, stored)),
              onTakeStored: () => setDraft((draft) => without(draft, [field])),
            }
          : null
      }
    >
      <Control id={id} field={field} text={text} isWrong={error !== undefined} onChange={change} />
    </FieldRow>
  );
}

interface ControlProps {
  id: string;
  field: Field;
  text: string;
  isWrong: boolean;
  onChange: (text: string) => void;
}

function Control({ id, field, text, isWrong, onChange }: ControlProps) {
  const spec = agentRuntimeFields[field];
  const { unit, long } = LABELS[field];
  const described = { "aria-invalid": isWrong, "aria-describedby": `${id}-hint ${id}-error` };
  if (spec.choices) {
    const choices = Object.fromEntries(spec.choices.map((choice) => [choice, CHOICES[choice] ?? choice]));
    return <Segments value={text} choices={choices} labelledBy={id} describedBy={`${id}-hint`} onChange={onChange} />;
  }
  if (long) {
    return <textarea id={id} className="input" rows={3} value={text} {...described} onChange={(event) => onChange(event.target.value)} />;
  }
  if (field === "defaultModel") return <ModelField id={id} text={text} described={described} onChange={onChange} />;
  return (
    <span className="measured">
      <input
        id={id}
        className="input"
        inputMode="numeric"
        autoComplete="off"
        value={text}
        {...described}
        onChange={(event) => onChange(event.target.value)}
      />
      <span className="small dim">
        {unit}
        {unit === "ms" && /^\d+$/.test(text) && Number(text) >= 1_000 && <span className="faint"> = {duration(Number(text))}</span>}
      </span>
    </span>
  );
}

function ModelField({
  id,
  text,
  described,
  onChange,
}: {
  id: string;
  text: string;
  described: object;
  onChange: (text: string) => void;
}) {
  const { data } = useQuery(modelsQuery);
  return (
    <>
      <input
        id={id}
        className="input"
        list={`${id}-models`}
        autoComplete="off"
        spellCheck={false}
        placeholder={data?.defaultModel ? `empty: ${data.defaultModel}` : "empty: the first of the server"}
        value={text}
        {...described}
        onChange={(event) => onChange(event.target.value)}
      />
      <datalist id={`${id}-models`}>
        {data?.models.map((model) => (
          <option key={model} value={model} />
        ))}
      </datalist>
    </>
  );
}
