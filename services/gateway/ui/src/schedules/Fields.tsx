import { type ReactNode, useId } from "react";
import { FieldRow } from "../editing/FieldRow";
import { AgentPicker, ModelPicker, WorkspacePicker } from "../tasks/pickers";
import { Preview, usePreview } from "./Preview";
import { setDraft } from "./draftStore";
import { type Draft, type Field, LABELS, RULES, type ScheduleForm, changes, conflicts, keepMine, put, shown, without } from "./form";

/** What is edited: `id` names its draft, `stored` is what it is compared with. */
export interface Form {
  id: string;
  stored: ScheduleForm;
  draft: Draft;
  wrong: Partial<Record<Field, string>>;
  isNew: boolean;
}

function change<F extends Field>(form: Form, field: F, value: ScheduleForm[F]): void {
  setDraft(form.id, (before) => put(before, field, value, form.stored));
}

/** Everything that a person decides about a schedule. */
export function Fields({ form, rule }: { form: Form; rule: ReturnType<typeof usePreview> }) {
  const schedule = shown(form.stored, form.draft);
  return (
    <>
      <TextField form={form} field="name" value={schedule.name} />
      <RuleField form={form} value={schedule.cron} rule={rule} />
      <TextField form={form} field="prompt" value={schedule.prompt} rows={5} hint="It is given as a task each time, word for word." />
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
        <TextField form={form} field="maxAttempts" value={schedule.maxAttempts} beside="1 to 10" hint="Of each task that comes of it." />
        <TextField form={form} field="catchUpMinutes" value={schedule.catchUpMinutes} unit="min" beside="0 to 10,080" hint="A time that passed while popagent did not run is made up for once, if it is not longer ago." />
      </div>
      <Flag form={form} field="skipIfRunning" value={schedule.skipIfRunning} on="Skip the time" off="Give another task" hint="What is done when a task of an earlier time still waits or runs." />
      <Flag form={form} field="enabled" value={schedule.enabled} on="On" off="Paused" hint="Paused it is kept, and can be run by hand." />
    </>
  );
}

function inWords(field: Field, value: ScheduleForm[Field] | null): string {
  if (field === "skipIfRunning") return value ? "Skip the time" : "Give another task";
  if (field === "enabled") return value ? "On" : "Paused";
  return String(value ?? "") || (field === "agentId" || field === "model" ? "the default" : "empty");
}

function Row({
  form: { id, stored, draft, wrong, isNew },
  field,
  children,
  ...rest
}: {
  form: Form;
  field: Field;
  labelFor: string;
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
              stored: inWords(field, stored[field]),
              mine: inWords(field, draft[field]?.value ?? null),
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

function TextField({
  form,
  field,
  value,
  hint,
  beside,
  unit,
  rows,
}: {
  form: Form;
  field: "name" | "prompt" | "maxAttempts" | "catchUpMinutes";
  value: string;
  hint?: ReactNode;
  beside?: ReactNode;
  unit?: string;
  rows?: number;
}) {
  const id = useId();
  const isNumber = field === "maxAttempts" || field === "catchUpMinutes";
  const control = {
    id,
    className: `input ${rows ? "grows" : ""}`,
    value,
    autoComplete: "off",
    dir: isNumber ? undefined : "auto",
    inputMode: isNumber ? ("numeric" as const) : undefined,
    "aria-invalid": form.wrong[field] !== undefined,
    "aria-describedby": `${id}-hint ${id}-error`,
    onChange: (event: { target: { value: string } }) => change(form, field, event.target.value),
  };
  const input = rows ? <textarea rows={rows} {...control} /> : <input {...control} />;
  return (
    <Row form={form} field={field} labelFor={id} hint={hint} beside={beside}>
      {isNumber ? (
        <span className="measured">
          {input}
          {unit && <span className="small dim">{unit}</span>}
        </span>
      ) : (
        input
      )}
    </Row>
  );
}

function RuleField({ form, value, rule }: { form: Form; value: string; rule: ReturnType<typeof usePreview> }) {
  const id = useId();
  return (
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
        aria-invalid={form.wrong.cron !== undefined}
        aria-describedby={`${id}-hint ${id}-error`}
        onChange={(event) => change(form, "cron", event.target.value)}
      />
      <div className="schedule-rules" role="group" aria-label="Rules to begin with">
        {RULES.map(({ cron, words }) => (
          <button key={cron} type="button" className="btn dense" aria-pressed={value.trim() === cron} onClick={() => change(form, "cron", cron)}>
            {words}
          </button>
        ))}
      </div>
      {form.wrong.cron === undefined && <Preview of={rule} hasRule={value.trim() !== ""} />}
    </Row>
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

function Flag({ form, field, value, on, off, hint }: { form: Form; field: "skipIfRunning" | "enabled"; value: boolean; on: string; off: string; hint: string }) {
  const id = useId();
  return (
    <Row form={form} field={field} labelFor={id} hint={hint}>
      <label className="check">
        <input id={id} type="checkbox" role="switch" checked={value} aria-describedby={`${id}-hint`} onChange={(event) => change(form, field, event.target.checked)} />
        <span aria-hidden="true">{value ? on : off}</span>
      </label>
    </Row>
  );
}
