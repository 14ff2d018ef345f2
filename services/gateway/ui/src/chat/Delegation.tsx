import { useContext, useId, useMemo, useState, useSyncExternalStore } from "react";
import type { AgentActivity } from "../contracts";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { initials } from "../ui/initials";
import { useNow } from "../ui/useNow";
import { LaneWork } from "./LaneWork";
import { type Activities, Told } from "./activity";
import { type Given, REFUSED, type Time, factsOf, headOf, isWokenUnder, lineOf, nameById, nameOf, spansOf, standing, sumOf, timeOf, wokenOf } from "./delegation";
import type { Ending } from "./messages";

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

/** Agents that were woken by letters of these calls, or of those who worked for them; nothing while there is none. */
export function Woken({ callIds, stored, messageId, ending }: { callIds: string[]; stored: Map<string, AgentActivity>; messageId: string; ending: Ending | null }) {
  const told = useContext(Told);
  const known = () => (stored.size > 0 ? [...stored] : told.all(messageId)).filter(([id, activity]) => isWokenUnder(id, activity, callIds));
  // Watched is who they are and how they stand; what they do is watched by their lanes.
  useSyncExternalStore(told.watch, () => JSON.stringify(known().map(([id, { state }]) => [id, state])));
  const woken = known().map(([id, activity]) => wokenOf(id, activity, stored.get(id) ?? null));
  return woken.length > 0 ? <Delegation given={woken} messageId={messageId} ending={ending} /> : null;
}

/** What is stored is whole; until then, what was told. */
function activityOf({ call, stored }: Given, messageId: string, told: Activities): AgentActivity | null {
  return stored ?? told.of(messageId, call.id);
}

/** When each worked; the same until one begins or ends, however much is told of what they do. */
function useTimes(given: Given[], messageId: string, ending: Ending | null): (Time | null)[] {
  const told = useContext(Told);
  const written = useSyncExternalStore(told.watch, () =>
    JSON.stringify(given.map((each) => timeOf(each, activityOf(each, messageId, told), ending))),
  );
  return useMemo(() => JSON.parse(written) as (Time | null)[], [written]);
}

function Sum({ given, messageId }: { given: Given[]; messageId: string }) {
  const told = useContext(Told);
  const sum = useSyncExternalStore(told.watch, () =>
    sumOf(
      given,
      given.map((each) => activityOf(each, messageId, told)),
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
  const told = useContext(Told);
  const activity = useSyncExternalStore(told.watch, () => activityOf(given, messageId, told));
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
          {initials(name)}
        </span>
        <b className="cut">
          {name}
          {given.askedBy !== undefined && <span className="faint"> for {nameById(given.askedBy)}</span>}
        </b>
        <span className="track" aria-hidden="true">
          {span && <i style={{ left: `${span.from}%`, width: `${span.length}%` }} />}
        </span>
        <span className="line xs faint nowrap">
          {factsOf(activity, isRunning, now)}
          <Icon name={open ? "down" : "right"} />
        </span>
        <span className="lane-now">
          <StateGlyph state={stands.state} />
          <span className={stands.state === "failed" ? "is-fail" : stands.word === REFUSED ? "is-wait" : isRunning ? "is-live" : ""}>{line.word}</span>
          <span className={line.isTail ? "tail" : stands.word === REFUSED ? "whole" : "cut"}>
            <span>{line.text}</span>
          </span>
        </span>
      </button>
      <div id={id} hidden={!open}>
        {open && <LaneWork given={given} activity={activity} name={name} stands={stands} />}
      </div>
    </li>
  );
}
