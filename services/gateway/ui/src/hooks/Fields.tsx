import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { agentsQuery } from "../agents/queries";
import type { HookList } from "../contracts";
import { type Form as EditedForm, formFields } from "../editing/formFields";
import { Coded } from "../ui/Coded";
import { Icon } from "../ui/Icon";
import { Segments } from "../ui/Segments";
import { duration } from "../ui/words";
import { setDraft } from "./draftStore";
import { ALL_EVENTS, EVENTS, type HookEvent, KINDS, ON_FAILURE, meant } from "./events";
import { type Field, type HookForm, LABELS, drafts, shown, withEvent } from "./form";

export type Form = EditedForm<HookForm, Field>;

const { change, Row, TextField, Flag } = formFields<HookForm, Field>({ drafting: drafts, setDraft, labels: LABELS, inWords });

/** Everything that a hook is made of. */
export function Fields({ form, hasSecret, places }: { form: Form; hasSecret: boolean; places: HookList }) {
  const hook = shown(form.stored, form.draft);
  const { refusal, names } = EVENTS[hook.event];
  const failureId = useId();
  return (
    <>
      <TextField form={form} field="name" hint="Whoever is refused something reads it." />
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
        <TextField form={form} field="timeoutMs" kind="number" unit="ms" beside="100 to 30,000" hint={/^\d{4,5}$/.test(hook.timeoutMs) ? `${duration(Number(hook.timeoutMs))}, in which the turn waits.` : "The turn waits so long."} />
        <TextField form={form} field="orderIndex" kind="number" beside="0 to 10,000" hint="Of one event the lowest comes first." />
      </div>
      <Flag form={form} field="enabled" hint="Turned off it is kept, can be tested, and is not called." />
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
      kind="code"
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
            <Missing text="No address may be called yet. Name its origin in `POPAGENT_HOOK_ORIGINS`, as `http://127.0.0.1:9000`, in `.env` beside `./popagent`, and start popagent again." />
          )}
          <TextField
            form={form}
            field="url"
            kind="code"
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
            kind="code"
            rows={3}
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
