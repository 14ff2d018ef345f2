import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useId } from "react";
import { agentsQuery } from "../agents/queries";
import type { HookList } from "../contracts";
import { FieldRow } from "../editing/FieldRow";
import { Coded } from "../ui/Coded";
import { Icon } from "../ui/Icon";
import { Segments } from "../ui/Segments";
import { duration } from "../ui/words";
import { setDraft } from "./draftStore";
import { ALL_EVENTS, EVENTS, type HookEvent, KINDS, ON_FAILURE, meant } from "./events";
import { type Draft, type Field, type HookForm, LABELS, changes, conflicts, keepMine, put, shown, without, withEvent } from "./form";

/** What is edited: `id` names its draft, `stored` is what it is compared with. */
export interface Form {
  id: string;
  stored: HookForm;
  draft: Draft;
  wrong: Partial<Record<Field, string>>;
  isNew: boolean;
}

function change<F extends Field>(form: Form, field: F, value: HookForm[F]): void {
  setDraft(form.id, (before) => put(before, field, value, form.stored));
}

/** Everything that a hook is made of. */
export function Fields({ form, hasSecret, places }: { form: Form; hasSecret: boolean; places: HookList }) {
  const hook = shown(form.stored, form.draft);
  const { refusal, names } = EVENTS[hook.event];
  const failureId = useId();
  return (
    <>
      <TextField form={form} field="name" value={hook.name} hint="Whoever is refused something reads it." />
      <EventField form={form} value={hook.event} />
      {names && <MatcherField form={form} value={hook.matcher} names={names} />}
      <KindFields form={form} hook={hook} places={places} />
      {hook.kind === "http" ? (
        <SecretField form={form} value={hook.secret} hasSecret={hasSecret} />
      ) : (
        hasSecret && <p className="small is-wait">The kept secret is removed when you save: a program is sent nothing over a wire.</p>
      )}
      {refusal && (
        <Row form={form} field="onFailure" labelId={failureId} hint="What counts when it does not answer in time, cannot be reached or answers nonsense.">
          <Segments value={hook.onFailure} choices={ON_FAILURE} labelledBy={failureId} describedBy={`${failureId}-hint`} onChange={(choice) => change(form, "onFailure", choice as HookForm["onFailure"])} />
        </Row>
      )}
      <div className="two">
        <TextField form={form} field="timeoutMs" value={hook.timeoutMs} unit="ms" beside="100 to 30,000" hint={/^\d{4,5}$/.test(hook.timeoutMs) ? `${duration(Number(hook.timeoutMs))}, in which the turn waits.` : "The turn waits so long."} />
        <TextField form={form} field="orderIndex" value={hook.orderIndex} beside="0 to 10,000" hint="Of one event the lowest comes first." />
      </div>
      <EnabledField form={form} value={hook.enabled} />
    </>
  );
}

function inWords(field: Field, value: HookForm[Field]): string {
  if (field === "event") return EVENTS[value as HookEvent].title;
  if (field === "onFailure") return ON_FAILURE[value as HookForm["onFailure"]];
  if (field === "kind") return KINDS[value as HookForm["kind"]];
  if (typeof value === "boolean") return value ? "On" : "Off";
  return value || "empty";
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
  className = "",
  placeholder,
}: {
  form: Form;
  field: "name" | "matcher" | "url" | "argv" | "timeoutMs" | "orderIndex";
  value: string;
  hint: ReactNode;
  beside?: ReactNode;
  unit?: string;
  rows?: number;
  className?: string;
  placeholder?: string;
}) {
  const id = useId();
  const isNumber = field === "timeoutMs" || field === "orderIndex";
  const control = {
    id,
    className: `input ${className}`,
    value,
    placeholder,
    autoComplete: "off",
    spellCheck: field === "name",
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

function EventField({ form, value }: { form: Form; value: HookEvent }) {
  const id = useId();
  const { when, refusal } = EVENTS[value];
  return (
    <Row
      form={form}
      field="event"
      labelFor={id}
      hint={
        <>
          {when} {refusal ? <b className="strong">May refuse.</b> : <b className="strong">Is told only.</b>} {refusal}
        </>
      }
    >
      <select
        id={id}
        className="input"
        value={value}
        aria-describedby={`${id}-hint`}
        onChange={(event) => setDraft(form.id, (before) => withEvent(before, event.target.value as HookEvent, form.stored))}
      >
        {ALL_EVENTS.map((event) => (
          <option key={event} value={event}>
            {EVENTS[event].title} ({event})
          </option>
        ))}
      </select>
    </Row>
  );
}

// Names in a hint; more are counted.
const MOST_NAMES = 8;

function MatcherField({ form, value, names }: { form: Form; value: string; names: "tools" | "specialists" }) {
  const { data } = useQuery(agentsQuery);
  const known = names === "tools" ? data?.tools.map((tool) => tool.name) : data?.items.filter((agent) => agent.delegable).map((agent) => agent.id);
  const found = known && value.trim() ? meant(value.trim(), known) : null;
  return (
    <TextField
      form={form}
      field="matcher"
      value={value}
      className="mono"
      beside={names === "tools" ? "tools by name" : "specialists by id"}
      hint={
        <>
          <code>*</code>, or an expression (RE2) that the whole name must match: <code>{names === "tools" ? "write|edit" : "researcher|reviewer"}</code>.{" "}
          {found !== null && value.trim() !== "*" && (
            <span role="status">
              {found.length === 0 ? <b className="is-wait">No {names === "tools" ? "tool of agents" : "specialist"} is called that now.</b> : <>Those are now: {found.slice(0, MOST_NAMES).join(", ")}</>}
              {found.length > MOST_NAMES && ` and ${found.length - MOST_NAMES} more`}
            </span>
          )}
        </>
      }
    />
  );
}

function KindFields({ form, hook, places }: { form: Form; hook: HookForm; places: HookList }) {
  const id = useId();
  const { origins, commandsProblem } = places;
  return (
    <>
      <Row form={form} field="kind" labelId={id}>
        <Segments value={hook.kind} choices={KINDS} labelledBy={id} onChange={(choice) => change(form, "kind", choice as HookForm["kind"])} />
      </Row>
      {hook.kind === "http" ? (
        <>
          {origins.length === 0 && (
            <Missing text="No address may be called yet. Name its origin in `POPAGENT_HOOK_ORIGINS`, as `http://127.0.0.1:9000`, and start popagent again." />
          )}
          <TextField
            form={form}
            field="url"
            value={hook.url}
            className="mono"
            placeholder={`${origins[0] ?? "http://127.0.0.1:9000"}/`}
            hint={
              <>
                It is sent a POST.{" "}
                {origins.length > 0 && (
                  <>
                    Allowed: <code className="path">{origins.slice(0, MOST_NAMES).join(", ")}</code>
                    {origins.length > MOST_NAMES && ` and ${origins.length - MOST_NAMES} more`}.
                  </>
                )}
              </>
            }
          />
        </>
      ) : (
        <>
          {commandsProblem !== null && <Missing text={`No program can be called. ${commandsProblem}`} />}
          <TextField
            form={form}
            field="argv"
            value={hook.argv}
            rows={3}
            className="mono"
            placeholder={"/hooks/guard.py\n--strict"}
            hint={
              <>
                The program, then its arguments, one a line; there is no shell. <code>/hooks</code> is the folder that the operator
                named. It reads the event from its standard input.
              </>
            }
          />
        </>
      )}
    </>
  );
}

function Missing({ text }: { text: string }) {
  return (
    <div className="remark wait">
      <Icon name="alert" />
      <p className="grow">
        <Coded text={text} />
      </p>
    </div>
  );
}

function SecretField({ form, value, hasSecret }: { form: Form; value: string | null; hasSecret: boolean }) {
  const id = useId();
  const isKept = hasSecret && value === "";
  return (
    <Row
      form={form}
      field="secret"
      labelFor={id}
      beside="16 to 256 characters"
      hint={
        <>
          Requests are signed with it. It is sealed before it is stored and never shown again.{" "}
          {isKept && (
            <button type="button" className="link" onClick={() => change(form, "secret", null)}>
              Remove the kept secret
            </button>
          )}
          {value === null && (
            <>
              <span className="is-wait">The kept secret is removed when you save.</span>{" "}
              <button type="button" className="link" onClick={() => change(form, "secret", "")}>
                Keep it
              </button>
            </>
          )}
        </>
      }
    >
      <input
        id={id}
        className="input mono"
        type="password"
        autoComplete="new-password"
        placeholder={isKept ? "kept; type to replace it" : "none"}
        value={value ?? ""}
        aria-invalid={form.wrong.secret !== undefined}
        aria-describedby={`${id}-hint ${id}-error`}
        onChange={(event) => change(form, "secret", event.target.value)}
      />
    </Row>
  );
}

function EnabledField({ form, value }: { form: Form; value: boolean }) {
  const id = useId();
  return (
    <Row form={form} field="enabled" labelFor={id} hint="Turned off it is kept, can be tested, and is not called.">
      <label className="check">
        <input id={id} type="checkbox" role="switch" checked={value} aria-describedby={`${id}-hint`} onChange={(event) => change(form, "enabled", event.target.checked)} />
        <span aria-hidden="true">{value ? "On" : "Off"}</span>
      </label>
    </Row>
  );
}
