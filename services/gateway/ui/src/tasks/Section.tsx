import { useQuery } from "@tanstack/react-query";
import { memo } from "react";
import { Link } from "wouter";
import { agentsQuery } from "../agents/queries";
import { sentence } from "../api/client";
import { workspacesQuery } from "../app/queries";
import type { TaskList, TaskSummary } from "../contracts";
import { Icon } from "../ui/Icon";
import { Skeletons } from "../ui/Skeletons";
import { StateGlyph } from "../ui/StateGlyph";
import { visible } from "../ui/visible";
import { clock, exactly } from "../ui/words";
import type { TaskState } from "./lists";
import { byOf, glyphOf, isOver, lineOf, sourceOf, stateWord, timeOf } from "./words";

interface Listed {
  data: { pages: TaskList[] } | undefined;
  error: Error | null;
  failureReason: Error | null;
  dataUpdatedAt: number;
  isFetching: boolean;
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  fetchNextPage: () => unknown;
  refetch: () => unknown;
}

/** Tasks that stand alike. Rows move between sections, never within one. */
export function Section({ label, states, list, now, isOnly }: { label: string; states: readonly TaskState[]; list: Listed; now: number; isOnly: boolean }) {
  const items = list.data?.pages.flatMap((page) => page.items) ?? [];
  const agents = useQuery(agentsQuery).data?.items;
  const workspaces = useQuery(workspacesQuery).data?.items;
  if (items.length === 0 && !isOnly) return null;
  const [state = "queued"] = states;
  return (
    <section aria-label={label}>
      <h2 className="task-section">
        <StateGlyph state={state === "failed" ? "failed" : glyphOf({ state, interruptedAt: null })} />
        {label}
        <span className="faint">
          {items.length}
          {list.hasNextPage && "+"}
        </span>
      </h2>
      {items.length === 0 && <p className="task-note small dim">{NOTHING[label]}</p>}
      <ul>
        {items.map((task) => (
          <Row key={task.id} task={task} by={agents && workspaces ? byOf(task, agents, workspaces) : ""} now={isOver(task) ? 0 : now} />
        ))}
      </ul>
      {list.hasNextPage && (
        <div className="task-more">
          <button type="button" className="btn" disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {list.isFetchingNextPage ? "Loading…" : "Show older"}
          </button>
        </div>
      )}
    </section>
  );
}

const NOTHING: Readonly<Record<string, string>> = {
  "Needs you": "Nothing waits for you.",
  Running: "Nothing runs.",
  Queued: "Nothing waits for a place.",
  Finished: "Nothing has finished yet.",
};

const Row = memo(function Row({ task, by, now }: { task: TaskSummary; by: string; now: number }) {
  const time = task.endedAt ?? task.startedAt ?? task.createdAt;
  return (
    <li className="task-item">
      <Link href={`/tasks/${task.id}`} className="task-row" data-row>
        <StateGlyph state={glyphOf(task)} />
        <span className="task-what">
          <span className="cut task-title">{visible(task.title)}</span>
          <Line task={task} now={now} />
        </span>
        <span className="cut task-by" title={visible(by)}>
          {visible(by)}
        </span>
        <span className="task-figure">{sourceOf(task)}</span>
        <span className="task-figure" title={`Attempt ${task.attemptCount} of ${task.maxAttempts}`}>
          {task.attemptCount > 0 && `${task.attemptCount} of ${task.maxAttempts}`}
        </span>
        <time dateTime={time} title={exactly(time)}>
          {timeOf(task, now)}
        </time>
      </Link>
    </li>
  );
});

/** What is not plain from the section is said by its word. */
function Line({ task, now }: { task: TaskSummary; now: number }) {
  const line = visible(lineOf(task, now));
  const word = stateWord(task);
  const ink = { Failed: "is-fail", "Dead letter": "is-fail", Interrupted: "is-wait" }[word];
  const isSaid = ink !== undefined || task.state === "cancelled" || task.state === "cancelling";
  return (
    <span className="cut task-line">
      {isSaid ? <span className={ink}>{word}</span> : <span className="sr">{word}. </span>}
      {isSaid && line && ": "}
      {line}
    </span>
  );
}

export function Waiting() {
  return <Skeletons count={8} what="the tasks" className="task-skeleton" />;
}

export function Trouble({ list }: { list: Listed }) {
  return (
    <div className="notice wait" role="alert">
      <Icon name="alert" />
      <span className="grow">
        {sentence(list.error ?? list.failureReason)}
        {list.data && ` This is what was known at ${clock(new Date(list.dataUpdatedAt).toISOString())}.`}
      </span>
      <button type="button" className="btn dense" disabled={list.isFetching} onClick={() => void list.refetch()}>
        {list.isFetching ? "Asking…" : "Ask again"}
      </button>
    </div>
  );
}
