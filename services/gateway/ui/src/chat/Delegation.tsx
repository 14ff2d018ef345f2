import { useCallback, useContext, useId, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import type { ActivityEntry, AgentActivity } from "../contracts";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { useNow } from "../ui/useNow";
import { visible } from "../ui/visible";
import { count, duration, plural } from "../ui/words";
import { Told } from "./activity";
import {
  type Given,
  type Standing,
  type Time,
  entriesOf,
  factsOf,
  gistOf,
  headOf,
  lineOf,
  nameOf,
  spansOf,
  standing,
  sumOf,
  taskOf,
  timeOf,
  tokensOf,
} from "./delegation";
import type { Ending } from "./messages";
import { Prose } from "./Prose";

// Within this distance of the end the reader follows what comes.
const NEAR_PX = 24;

/** Work that was given to specialists: one card, a lane for each. Nothing in it opens or closes by itself. */
export function Delegation({ given, messageId, ending }: { given: Given[]; messageId: string; ending: Ending | null }) {
  const { title, manner } = headOf(given);
  const isRunning = ending === null && given.some(({ call }) => !call.state.startsWith("output"));
  const now = useNow(isRunning);
  const times = useTimes(given, messageId, ending);
  const spans = spansOf(times, now);
  return (
    <div className={`event ${isRunning ? "running" : ""}`}>
      <span className="dot">
        <Icon name="agents" />
      </span>
      <section className="card lanes" aria-label={title}>
        <header className="line">
          <b>{title}</b>
          <span className="faint cut">{manner}</span>
          {!isRunning && given.length > 1 && <Sum given={given} messageId={messageId} />}
        </header>
        <ul>
          {given.map((each, index) => (
            <Lane
              key={each.call.id}
              given={each}
              messageId={messageId}
              ending={ending}
              now={now}
              span={given.length > 1 ? (spans[index] ?? null) : null}
            />
          ))}
        </ul>
      </section>
    </div>
  );
}

/** What is stored is whole; until then, what was told. */
function useActivity({ call, stored }: Given, messageId: string): AgentActivity | null {
  const told = useContext(Told);
  return useSyncExternalStore(told.watch, () => stored ?? told.of(messageId, call.id));
}

/** When each worked; the same until one begins or ends, however much is told of what they do. */
function useTimes(given: Given[], messageId: string, ending: Ending | null): (Time | null)[] {
  const told = useContext(Told);
  const written = useSyncExternalStore(told.watch, () =>
    JSON.stringify(given.map((each) => timeOf(each, each.stored ?? told.of(messageId, each.call.id), ending))),
  );
  return useMemo(() => JSON.parse(written) as (Time | null)[], [written]);
}

function Sum({ given, messageId }: { given: Given[]; messageId: string }) {
  const told = useContext(Told);
  const sum = useSyncExternalStore(told.watch, () =>
    sumOf(
      given,
      given.map(({ call, stored }) => stored ?? told.of(messageId, call.id)),
    ),
  );
  return <span className="end xs faint nowrap">{sum}</span>;
}

function Lane({
  given,
  messageId,
  ending,
  now,
  span,
}: {
  given: Given;
  messageId: string;
  ending: Ending | null;
  now: number;
  /** When it worked, beside others. */
  span: { from: number; length: number } | null;
}) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const activity = useActivity(given, messageId);
  const { call } = given;
  const name = nameOf(call, activity);
  const stands = standing(call, activity, ending);
  const isRunning = stands.state === "running";
  const line = lineOf(stands, call, activity);
  return (
    <li className={`lane ${stands.state}`}>
      <button
        type="button"
        className="lane-head"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
      >
        <span className="who" aria-hidden="true">
          {name.slice(0, 2)}
        </span>
        <b className="cut">{name}</b>
        <span className="track" aria-hidden="true">
          {span && <i style={{ left: `${span.from}%`, width: `${span.length}%` }} />}
        </span>
        <span className="line xs faint nowrap">
          {factsOf(activity, isRunning, now)}
          <Icon name={open ? "down" : "right"} />
        </span>
        <span className="lane-now">
          <StateGlyph state={stands.state} />
          <span className={stands.state === "failed" ? "is-fail" : isRunning ? "is-live" : ""}>{line.word}</span>
          <span className={line.isTail ? "tail" : "cut"}>
            <span>{line.text}</span>
          </span>
        </span>
      </button>
      <div id={id} hidden={!open}>
        {open && <Work given={given} activity={activity} name={name} stands={stands} />}
      </div>
    </li>
  );
}

/** Everything that is known of one specialist's work, in a box that grows to a bound. */
function Work({
  given: { call },
  activity,
  name,
  stands,
}: {
  given: Given;
  activity: AgentActivity | null;
  name: string;
  stands: Standing;
}) {
  const box = useRef<HTMLDivElement>(null);
  const isRunning = stands.state === "running";
  const follows = useRef(isRunning);
  const onScroll = useCallback(() => {
    const at = box.current;
    if (at) follows.current = at.scrollHeight - at.clientHeight - at.scrollTop <= NEAR_PX;
  }, []);
  useLayoutEffect(() => {
    // What ended is read from where the reader is.
    if (isRunning && follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  });
  const result = call.state === "output-available" && typeof call.output === "string" ? call.output.trim() : "";
  const entries = entriesOf(activity);
  const last = entries.at(-1);
  // The last text is what the orchestrator was given, unless that was cut.
  if (result && last?.kind === "text" && result.startsWith((last.text ?? "").trim())) entries.pop();
  return (
    <div className="lane-work" ref={box} onScroll={onScroll} tabIndex={0} role="group" aria-label={`What ${name} does`}>
      <h4>Task</h4>
      <p className="told" dir="auto">
        {taskOf(call, activity)}
      </p>
      {entries.length > 0 && <h4>Work</h4>}
      <ol>
        {entries.map((entry) => (
          <li key={entry.key}>{entry.kind === "call" ? <Call entry={entry} isRunning={isRunning} /> : <Words text={entry.text} />}</li>
        ))}
      </ol>
      {activity?.omitted ? <p className="faint">{plural(activity.omitted, "more call or text", "more calls and texts")}, not kept here.</p> : null}
      {isRunning && entries.length === 0 && <p className="faint">It has not said or done anything yet.</p>}
      {(result || call.error) && <h4>What the orchestrator was given</h4>}
      {result && <Prose text={result} isGrowing={false} />}
      {call.error && <p className={stands.state === "failed" ? "is-fail told" : "told"}>{visible(call.error)}</p>}
      <Facts activity={activity} isRunning={isRunning} />
    </div>
  );
}

function Words({ text = "" }: { text?: string | undefined }) {
  return (
    <p className="told" dir="auto">
      {visible(text.trim())}
    </p>
  );
}

const CALL_WORDS = { running: "runs", done: "", failed: "failed" };

function Call({ entry, isRunning }: { entry: ActivityEntry; isRunning: boolean }) {
  const state = entry.state === "running" && !isRunning ? "failed" : (entry.state ?? "done");
  const word = entry.state === "running" && !isRunning ? "did not end" : CALL_WORDS[state];
  return (
    <p className="lane-call">
      {state === "running" ? <StateGlyph state="running" /> : <Icon name={state === "failed" ? "alert" : "tool"} />}
      <b>{visible(entry.tool ?? "")}</b>
      <span className="cut">{gistOf(entry.input ?? "")}</span>
      <span className="end xs faint nowrap">
        <span className={state === "failed" ? "is-fail" : ""}>{word}</span>
        {word && entry.durationMs !== undefined && " · "}
        {entry.durationMs !== undefined && duration(entry.durationMs)}
      </span>
    </p>
  );
}

function Facts({ activity, isRunning }: { activity: AgentActivity | null; isRunning: boolean }) {
  if (!activity) return null;
  const { usage, durationMs, maxSteps, steps = 0 } = activity;
  const tokens = usage && tokensOf(activity) > 0;
  const facts = [
    activity.model && visible(activity.model),
    maxSteps !== undefined && `${steps} of at most ${plural(maxSteps, "step")}`,
    tokens && `${count(usage.inputTokens)} tokens read, ${count(usage.outputTokens)} written${usage.estimated ? " (counted here)" : ""}`,
    durationMs !== undefined && duration(durationMs),
  ].filter(Boolean);
  return (
    <p className="xs faint">
      {facts.join(" · ")}
      {!isRunning && activity.budgetExhausted && <span className="is-wait"> · out of steps: this is a summary</span>}
    </p>
  );
}
