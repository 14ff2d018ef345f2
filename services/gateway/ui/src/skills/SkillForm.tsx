import { type ReactNode, useId } from "react";
import { FieldRow } from "../editing/FieldRow";
import { Pairs } from "./Pairs";
import { setDraft } from "./draftStore";
import { type Draft, type Field, LABELS, LONGEST, type SkillForm, changes, conflicts, inWords, keepMine, put, shown, without } from "./form";

/** What is edited: `id` names its draft, `stored` is what it is compared with. */
export interface Form {
  id: string;
  stored: SkillForm;
  draft: Draft;
  wrong: Partial<Record<Field, string>>;
  isNew: boolean;
}

function change<F extends Field>(form: Form, field: F, value: SkillForm[F]): void {
  setDraft(form.id, (before) => put(before, field, value, form.stored));
}

/** Everything that a skill is made of. */
export function SkillFields({ form }: { form: Form }) {
  const skill = shown(form.stored, form.draft);
  const [referencesId, notesId] = [useId(), useId()];
  return (
    <>
      <Text form={form} field="name" value={skill.name} className="mono" hint="The agent opens it by this name: small letters, digits and hyphens." />
      <Text form={form} field="description" value={skill.description} rows={3} hint="What it is for and when to use it. It is all that the agent knows of it before it opens it." />
      <Text form={form} field="instructions" value={skill.instructions} rows={16} hint="The procedure, in Markdown. The agent reads it when it opens the skill." />
      <Row form={form} field="references" labelId={referencesId} hint="Texts that the instructions point to, by path below references/. Each is read by itself, when it is needed.">
        <Pairs
          value={skill.references}
          labelledBy={referencesId}
          words={{ one: "text", name: "Path", text: "Text", fresh: "notes.md", add: "Add a text" }}
          rows={12}
          onChange={(value) => change(form, "references", value)}
        />
      </Row>
      <EnabledField form={form} value={skill.enabled} />
      <section className="settings-group">
        <h2>What the standard knows besides</h2>
        <p className="small dim">It goes with the skill when it is exported; no agent reads it.</p>
        <div className="two">
          <Text form={form} field="license" value={skill.license} />
          <Text form={form} field="compatibility" value={skill.compatibility} />
        </div>
        <Text form={form} field="allowedTools" value={skill.allowedTools} className="mono" hint="Kept, and giving no right: tools come from the profile." />
        <Text form={form} field="provenance" value={skill.provenance} hint="In words, or an address." />
        <Row form={form} field="metadata" labelId={notesId}>
          <Pairs
            value={skill.metadata}
            labelledBy={notesId}
            words={{ one: "note", name: "Key", text: "Value", fresh: "author", add: "Add a note" }}
            rows={2}
            onChange={(value) => change(form, "metadata", value)}
          />
        </Row>
      </section>
    </>
  );
}

function Row({
  form: { id, stored, draft, wrong, isNew },
  field,
  children,
  ...rest
}: {
  form: Form;
  field: Field;
  labelFor?: string;
  labelId?: string;
  beside?: ReactNode;
  hint?: ReactNode;
  children: ReactNode;
}) {
  return (
    <FieldRow
      label={LABELS[field]}
      error={wrong[field]}
      isChanged={!isNew && changes(draft, stored).includes(field)}
      dispute={
        conflicts(draft, stored).includes(field)
          ? {
              stored: inWords(stored[field]),
              mine: inWords(draft[field]?.value ?? ""),
              onKeepMine: () => setDraft(id, (before) => keepMine(before, field, stored)),
              onTakeStored: () => setDraft(id, (before) => without(before, [field])),
            }
          : null
      }
      {...rest}
    >
      {children}
    </FieldRow>
  );
}

function Text({
  form,
  field,
  value,
  rows,
  hint,
  className = "",
}: {
  form: Form;
  field: keyof typeof LONGEST;
  value: string;
  rows?: number;
  hint?: ReactNode;
  className?: string;
}) {
  const id = useId();
  const control = {
    id,
    className: `input ${className}`,
    value,
    autoComplete: "off",
    "aria-invalid": form.wrong[field] !== undefined,
    "aria-describedby": `${id}-hint ${id}-error`,
    onChange: (event: { target: { value: string } }) => change(form, field, event.target.value),
  };
  return (
    <Row form={form} field={field} labelFor={id} hint={hint} beside={rows ? `${[...value].length.toLocaleString()} of ${LONGEST[field].toLocaleString()} characters` : ""}>
      {rows ? <textarea rows={rows} {...control} /> : <input spellCheck={className === ""} {...control} />}
    </Row>
  );
}

function EnabledField({ form, value }: { form: Form; value: boolean }) {
  const id = useId();
  return (
    <Row form={form} field="enabled" labelFor={id} hint="Turned off it is kept, and no run has it.">
      <label className="check">
        <input id={id} type="checkbox" role="switch" checked={value} aria-describedby={`${id}-hint`} onChange={(event) => change(form, "enabled", event.target.checked)} />
        <span aria-hidden="true">{value ? "On" : "Off"}</span>
      </label>
    </Row>
  );
}
