import { useQuery } from "@tanstack/react-query";
import { memo, useId, useState } from "react";
import { initials } from "../ui/initials";
import { ORCHESTRATOR, agentsQuery } from "../agents/queries";
import { Prose } from "../chat/Prose";
import { ToolLine } from "../chat/ToolLine";
import type { ToolCall } from "../chat/messages";
import type { ActivityCall } from "../contracts";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { visible } from "../ui/visible";
import { clock, plural } from "../ui/words";
import { endingOf } from "./words";
import { type AttemptWork, type Item, type Stretch, newest } from "./transcript";

// So many of what was said and done are shown at once; what came before opens.
const SHOWN = 24;

/** What was done in one attempt: closed where its result says enough. */
export function Work({ work, lead, isLive, isOpenAtFirst, name }: { work: AttemptWork; lead: string; isLive: boolean; isOpenAtFirst: boolean; name: string }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const [isWhole, setWhole] = useState(false);
  const id = useId();
  const isOpen = chosen ?? isOpenAtFirst;
  const { stretches, before } = isWhole ? { stretches: work.stretches, before: 0 } : newest(work, SHOWN);
  return (
    <section className="task-work" aria-label={name}>
      <button type="button" className="task-fold" aria-expanded={isOpen} aria-controls={id} onClick={() => setChosen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} />
        <b>{name}</b>
        <span className="faint">
          {plural(work.steps, "step")}
          {work.calls > 0 && `, ${plural(work.calls, "call")}`}
        </span>
        <time className="end xs faint" dateTime={work.at}>
          {clock(work.at)}
        </time>
      </button>
      <div id={id} hidden={!isOpen} className="task-events">
        {before > 0 && (
          <button type="button" className="btn plain dense" onClick={() => setWhole(true)}>
            Show {plural(before, "earlier step or call", "earlier steps and calls")}
          </button>
        )}
        {isOpen && stretches.map((stretch) => <Told key={stretch.key} stretch={stretch} lead={lead} isLive={isLive} />)}
        {isOpen && stretches.length === 0 && <p className="small faint">{isLive ? "It has not said or done anything yet." : "Nothing else was said or done."}</p>}
      </div>
    </section>
  );
}

/** What one of them did; a specialist stands apart, with its name. */
function Told({ stretch, lead, isLive }: { stretch: Stretch; lead: string; isLive: boolean }) {
  const agents = useQuery(agentsQuery).data?.items ?? [];
  if (stretch.agentId === null) return stretch.items.map((item) => <Runner key={item.key} item={item} />);
  const isSpecialist = stretch.agentId !== lead;
  const agentName = agents.find((each) => each.id === stretch.agentId)?.name ?? (stretch.agentId === ORCHESTRATOR ? "Orchestrator" : stretch.agentId);
  return (
    <div className={`task-told ${isSpecialist ? "specialist" : ""}`}>
      <div className="event first">
        <span className="dot">
          <span className="who" aria-hidden="true">
            {initials(agentName)}
          </span>
        </span>
        <div className="by">
          <b>{visible(agentName)}</b>
          {isSpecialist && <span className="xs faint">specialist</span>}
          <span className="xs faint">{clock(stretch.at)}</span>
        </div>
      </div>
      {stretch.items.map((item) => (
        <One key={item.key} item={item} isLive={isLive} isSpecialist={isSpecialist} />
      ))}
    </div>
  );
}

const One = memo(
  function One({ item, isLive, isSpecialist }: { item: Item; isLive: boolean; isSpecialist: boolean }) {
    if (item.kind === "call") return <ToolLine call={toolCall(item.call, isLive)} />;
    if (item.kind === "status")
      return (
        <div className="event">
          <span className="dot">
            <Icon name="tasks" />
          </span>
          <p className="small dim told">{visible(item.text)}</p>
        </div>
      );
    return (
      <div className="event">
        {isSpecialist ? (
          <p className="small told" dir="auto">
            {visible(item.text.trim())}
          </p>
        ) : (
          <Prose text={item.text} isGrowing={false} />
        )}
      </div>
    );
  },
  (a, b) => JSON.stringify(a) === JSON.stringify(b),
);

const PHASES = { running: "input-available", completed: "output-available", failed: "output-error", denied: "output-error" } as const;

/** As chat shows it. A call that was not answered when its attempt ended never will be. */
function toolCall(call: ActivityCall, isLive: boolean): ToolCall {
  const isLost = call.status === "running" && !isLive;
  return {
    id: call.callId,
    name: visible(call.tool),
    state: isLost ? "output-error" : PHASES[call.status],
    input: call.arguments ?? undefined,
    output: call.result ?? undefined,
    error: call.error ?? (isLost ? "The attempt ended before it answered." : call.status === "denied" ? "It was denied." : call.status === "failed" ? "It failed; why is not kept." : null),
    durationMs: null,
  };
}

/** How the runner tells of an attempt. */
function Runner({ item }: { item: Item }) {
  if (item.kind !== "status") return null;
  return (
    <p className="task-runner small">
      <StateGlyph state="failed" />
      <span>{visible(endingOf(item.text))}</span>
      <time className="xs faint" dateTime={item.at}>
        {clock(item.at)}
      </time>
    </p>
  );
}
