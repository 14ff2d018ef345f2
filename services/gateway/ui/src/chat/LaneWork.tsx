import { useCallback, useLayoutEffect, useRef } from "react";
import type { ActivityEntry, AgentActivity } from "../contracts";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { visible } from "../ui/visible";
import { count, duration, plural } from "../ui/words";
import { Prose } from "./Prose";
import { type Given, type Standing, entriesOf, gistOf, nameById, taskOf, tokensOf } from "./delegation";

// Within this distance of the end the reader follows what comes.
const NEAR_PX = 24;

/** Everything that is known of one specialist's work, in a box that grows to a bound. */
export function LaneWork({
  given: { call, askedBy },
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
  // The last text is what whoever asked was given, unless that was cut.
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
          <li key={entry.key}>
            {entry.kind === "call" ? <Call entry={entry} isRunning={isRunning} /> : <Words text={entry.text} />}
            {entry.refusal !== undefined && <p className="reason is-wait">{visible(entry.refusal)}</p>}
          </li>
        ))}
      </ol>
      {activity?.omitted ? <p className="faint">{plural(activity.omitted, "more call or text", "more calls and texts")}, not kept here.</p> : null}
      {isRunning && entries.length === 0 && <p className="faint">It has not said or done anything yet.</p>}
      {(result || call.error) && <h4>{askedBy === undefined ? "What the orchestrator was given" : `What ${nameById(askedBy)} was answered`}</h4>}
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
  const isRefused = entry.refusal !== undefined;
  const word = isRefused ? "refused" : entry.state === "running" && !isRunning ? "did not end" : CALL_WORDS[state];
  return (
    <p className="lane-call">
      {state === "running" ? <StateGlyph state="running" /> : <Icon name={state === "failed" ? "alert" : "tool"} />}
      <b>{visible(entry.tool ?? "")}</b>
      <span className="cut">{gistOf(entry.input ?? "")}</span>
      <span className="end xs faint nowrap">
        <span className={isRefused ? "is-wait" : state === "failed" ? "is-fail" : ""}>{word}</span>
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
