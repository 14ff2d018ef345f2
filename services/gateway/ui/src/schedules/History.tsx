import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { ScheduleRunView, ScheduleView, TaskSummary } from "../contracts";
import { Loading } from "../settings/Loading";
import { type TaskState, of, tasksQuery } from "../tasks/lists";
import { glyphOf, stateWord } from "../tasks/words";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { visible } from "../ui/visible";
import { exactly } from "../ui/words";
import { runsQuery } from "./queries";
import { local, outcomeOf } from "./times";

const ALL: readonly TaskState[] = ["queued", "running", "cancelling", "completed", "failed", "cancelled", "dead-letter"];

/** What came of each time, the newest first, with how its task stands now. */
export function History({ schedule }: { schedule: ScheduleView }) {
  const runs = useInfiniteQuery(runsQuery(schedule.id));
  const tasks = useInfiniteQuery(tasksQuery(of(ALL, { scheduleId: schedule.id })));
  const known = new Map(tasks.data?.pages.flatMap((page) => page.items.map((task) => [task.id, task] as const)));
  return (
    <section className="settings-group" aria-label="History">
      <div className="line">
        <h2>History</h2>
        <Link href={`/tasks?schedule=${schedule.id}`} className="link small end">
          All its tasks
        </Link>
      </div>
      <Loading query={runs} what="what came of it">
        {({ pages }) => {
          const items = pages.flatMap((page) => page.items);
          if (items.length === 0) return <p className="small dim">It did not run yet.</p>;
          return (
            <ol className="card schedule-runs">
              {items.map((run) => (
                <Run key={`${run.plannedAt} ${run.asked}`} run={run} task={run.taskId ? known.get(run.taskId) : undefined} />
              ))}
            </ol>
          );
        }}
      </Loading>
      {runs.hasNextPage && (
        <button type="button" className="btn plain dense schedule-more" disabled={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
          {runs.isFetchingNextPage ? "Loading…" : "Show older"}
        </button>
      )}
    </section>
  );
}

function Run({ run, task }: { run: ScheduleRunView; task: TaskSummary | undefined }) {
  const { word, why, tone } = outcomeOf(run);
  return (
    <li>
      {task ? <StateGlyph state={glyphOf(task)} /> : <Icon name={tone ? "alert" : "clock"} className={tone ? `is-${tone}` : "faint"} />}
      <span className="task-what">
        <span className="line">
          <time dateTime={run.plannedAt} title={exactly(run.plannedAt)}>
            {local(run.plannedAt)}
          </time>
          {run.asked && <span className="chip">by hand</span>}
        </span>
        {why && <span className={`xs ${tone ? `is-${tone}` : "dim"}`}>{visible(why)}</span>}
      </span>
      <span className={`small ${tone ? `is-${tone}` : "dim"}`}>{task ? stateWord(task) : word}</span>
      {run.taskId && (
        <Link href={`/tasks/${run.taskId}`} className="btn plain dense" aria-label={`Open the task of ${local(run.plannedAt)}`}>
          Open
        </Link>
      )}
    </li>
  );
}
