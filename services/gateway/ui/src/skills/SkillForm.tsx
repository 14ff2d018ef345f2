import { useId } from "react";
import { type Form as EditedForm, formFields } from "../editing/formFields";
import { Pairs } from "./Pairs";
import { setDraft } from "./draftStore";
import { type Field, LABELS, LONGEST, type SkillForm, drafts, inWords, shown } from "./form";

type Form = EditedForm<SkillForm, Field>;

const { change, Row, TextField, Flag } = formFields<SkillForm, Field>({ drafting: drafts, setDraft, labels: LABELS, inWords: (_, value) => inWords(value) });

/** Everything that a skill is made of. */
export function SkillFields({ form }: { form: Form }) {
  const skill = shown(form.stored, form.draft);
  const [referencesId, notesId] = [useId(), useId()];
  return (
    <>
      <TextField form={form} field="name" kind="code" hint="The agent opens it by this name: small letters, digits and hyphens." />
      <LongField form={form} field="description" rows={3} hint="What it is for and when to use it. It is all that the agent knows of it before it opens it." />
      <LongField form={form} field="instructions" rows={16} hint="The procedure, in Markdown. The agent reads it when it opens the skill." />
      <Row form={form} field="references" labelId={referencesId} hint="Texts that the instructions point to, by path below references/. Each is read by itself, when it is needed.">
        <Pairs
          value={skill.references}
          labelledBy={referencesId}
          words={{ one: "text", name: "Path", text: "Text", fresh: "notes.md", add: "Add a text" }}
          rows={12}
          onChange={(value) => change(form, "references", value)}
        />
      </Row>
      <Flag form={form} field="enabled" hint="Turned off it is kept, and no run has it." />
      <section className="settings-group">
        <h2>What the standard knows besides</h2>
        <p className="small dim">It goes with the skill when it is exported; no agent reads it.</p>
        <div className="two">
          <TextField form={form} field="license" />
          <TextField form={form} field="compatibility" />
        </div>
        <TextField form={form} field="allowedTools" kind="code" hint="Kept, and giving no right: tools come from the profile." />
        <TextField form={form} field="provenance" hint="In words, or an address." />
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

/** A text that may become long: beside it stands how long it is. */
function LongField({ form, field, rows, hint }: { form: Form; field: "description" | "instructions"; rows: number; hint: string }) {
  const length = [...shown(form.stored, form.draft)[field]].length;
  return <TextField form={form} field={field} rows={rows} hint={hint} beside={`${length.toLocaleString()} of ${LONGEST[field].toLocaleString()} characters`} />;
}
