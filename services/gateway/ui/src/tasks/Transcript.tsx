import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ORCHESTRATOR } from "../agents/queries";
import { Loading } from "../settings/Loading";
import { StateGlyph } from "../ui/StateGlyph";
import { attempt } from "../ui/attempt";
import { plural } from "../ui/words";
import { Work } from "./Work";
import { type TaskDetail, readOlder, transcriptQuery } from "./queries";
import { attemptsOf, withoutEcho, withoutEnd, withoutOutput } from "./transcript";
import { useFollowed } from "./useFollowed";
import { isOver } from "./words";

const RECORDS_KEPT = 256;

/** What was said and done, attempt by attempt, as it grows. */
export function Transcript({ task }: { task: TaskDetail }) {
  const [isLoading, setLoading] = useState(false);
  const isRunning = task.state === "running" || task.state === "cancelling";
  const read = useQuery(transcriptQuery(task.id));
  useFollowed(task, read.data !== undefined);
  return (
    <Loading query={{ ...read, failureReason: read.data ? null : read.failureReason }} what="what it did">
      {({ records, previousCursor }) => {
        const works = attemptsOf(records);
        const first = records[0];
        // What is shorter and does not begin at the beginning lost nothing to room.
        const isFull = (records.at(-1)?.seq ?? 0) > RECORDS_KEPT;
        const older = async (before: number) => {
          setLoading(true);
          await attempt(readOlder(task.id, before));
          setLoading(false);
        };
        return (
          <div className="task-works" role="log" aria-live="off" aria-label="Transcript">
            {previousCursor !== null ? (
              <button type="button" className="btn plain dense" disabled={isLoading} onClick={() => void older(previousCursor)}>
                {isLoading ? "Loading…" : "Show older records"}
              </button>
            ) : (
              first &&
              isFull && first.seq > 1 && <p className="xs faint task-dropped">{plural(first.seq - 1, "older record")} made room for newer ones.</p>
            )}
            {works.map((work) => {
              const isLast = work.attempt === task.attemptCount;
              return (
                <Work
                  key={work.attempt}
                  work={isLast && isRunning ? work : !isLast ? withoutEcho(work) : task.output ? withoutOutput(work, task.output) : withoutEnd(work, task.lastError)}
                  lead={task.agentId ?? ORCHESTRATOR}
                  isLive={isLast && isRunning}
                  isOpenAtFirst={isLast && task.state !== "completed"}
                  name={task.attemptCount > 1 ? `Attempt ${work.attempt}` : "Work"}
                />
              );
            })}
            {isRunning && (
              <p className="small is-live task-runner">
                <StateGlyph state="running" />
                {task.state === "cancelling" ? "Was told to end" : "Works"}
              </p>
            )}
            {works.length === 0 && isOver(task) && task.attemptCount > 0 && <p className="small faint">Nothing of what it did is kept.</p>}
          </div>
        );
      }}
    </Loading>
  );
}
