import { type ReactNode, useId } from "react";
import { type Form as EditedForm, formFields } from "../editing/formFields";
import { AgentPicker, ModelPicker, WorkspacePicker } from "../tasks/pickers";
import { NO_RULE, Preview, type usePreview } from "./Preview";
import { setDraft } from "./draftStore";
import { type Field, LABELS, RULES, type ScheduleForm, drafts, shown } from "./form";

type Form = EditedForm<ScheduleForm, Field>;

const { change, Row, TextField, Flag } = formFields<ScheduleForm, Field>({ drafting: drafts, setDraft, labels: LABELS, inWords });

/** Everything that a person decides about a schedule. */
export function Fields({ form, rule }: { form: Form; rule: ReturnType<typeof usePreview> }) {
  const schedule = shown(form.stored, form.draft);
  return (
    <>
      <TextField form={form} field="name" />
      <RuleField form={form} value={schedule.cron} rule={rule} />
      <TextField form={form} field="prompt" rows={5} className="grows" hint="It is given as a task each time, word for word." />
      <div className="two">
        {form.isNew && (
          <Choice form={form} field="workspaceId" hint="It never changes.">
            {(picker) => <WorkspacePicker {...picker} value={schedule.workspaceId} />}
          </Choice>
        )}
        <Choice form={form} field="agentId">
          {(picker) => <AgentPicker {...picker} value={schedule.agentId} />}
        </Choice>
        <Choice form={form} field="model">
          {(picker) => <ModelPicker {...picker} value={schedule.model} />}
        </Choice>
        <TextField form={form} field="maxAttempts" kind="number" beside="1 to 10" hint="Of each task that comes of it." />
        <TextField form={form} field="catchUpMinutes" kind="number" unit="min" beside="0 to 10,080" hint="A time that passed while popagent did not run is made up for once, if it is not longer ago." />
      </div>
      <Flag form={form} field="skipIfRunning" on="Skip the time" off="Give another task" hint="What is done when a task of an earlier time still waits or runs." />
      <Flag form={form} field="enabled" off="Paused" hint="Paused it is kept, and can be run by hand." />
    </>
  );
}

function inWords(field: Field, value: ScheduleForm[Field]): string {
  if (field === "skipIfRunning") return value ? "Skip the time" : "Give another task";
  if (field === "enabled") return value ? "On" : "Paused";
  return String(value) || (field === "agentId" || field === "model" ? "the default" : "empty");
}

function RuleField({ form, value, rule }: { form: Form; value: string; rule: ReturnType<typeof usePreview> }) {
  const id = useId();
  const isRight = form.wrong.cron === undefined;
  return (
    <div className="schedule-when">
      <Row
        form={form}
        field="cron"
        labelFor={id}
        hint={
          <>
            Minute, hour, day of the month, month, day of the week; or <code>@hourly</code>, <code>@daily</code>, <code>@weekly</code>,{" "}
            <code>@monthly</code>, <code>@yearly</code>.
          </>
        }
      >
        <input
          id={id}
          className="input mono"
          value={value}
          placeholder="30 8 * * MON-FRI"
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          aria-invalid={!isRight}
          aria-describedby={`${id}-hint ${id}-error`}
          onChange={(event) => change(form, "cron", event.target.value)}
        />
      </Row>
      <div className="schedule-rules" role="group" aria-label="Rules to begin with">
        {RULES.map(({ cron, words }) => (
          <button key={cron} type="button" className="btn dense" aria-pressed={value.trim() === cron} onClick={() => change(form, "cron", cron)}>
            {words}
          </button>
        ))}
      </div>
      <Preview of={isRight ? rule : NO_RULE} hasRule={value.trim() !== ""} />
    </div>
  );
}

interface Control {
  id: string;
  isInvalid: boolean;
  onChange: (value: string) => void;
}

function Choice({ form, field, hint, children }: { form: Form; field: "workspaceId" | "agentId" | "model"; hint?: ReactNode; children: (control: Control) => ReactNode }) {
  const id = useId();
  return (
    <Row form={form} field={field} labelFor={id} hint={hint}>
      {children({ id, isInvalid: form.wrong[field] !== undefined, onChange: (value) => change(form, field, value) })}
    </Row>
  );
}
