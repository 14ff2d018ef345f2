import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { Link } from "wouter";
import { workspacesQuery } from "../app/queries";
import type { TaskSummary } from "../contracts";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { useTitle } from "../ui/useTitle";
import { visible } from "../ui/visible";
import { exactly, when } from "../ui/words";
import { Trouble, Waiting } from "./Section";
import { Repaired } from "./Standing";
import { useActions } from "./actions";
import { taskQuery } from "./queries";
import { activeQuery, needsQuery, useNeeds } from "./lists";
import { useMove } from "./useMove";
import { glyphOf, isInterrupted, sourceOf, stateWord, whyOf } from "./words";

/** Whatever does not go on without a person, answered in place. */
export function Inbox() {
  const ended = useInfiniteQuery(needsQuery);
  const active = useInfiniteQuery(activeQuery);
  const { needs } = useNeeds();
  const list = useRef<HTMLDivElement>(null);
  useMove(list);
  useTitle("Needs you");
  const trouble = [ended, active].find(({ error, failureReason }) => error ?? failureReason);
  return (
    <main className="main tasks">
      <header className="bar">
        <h1>Needs you</h1>
        {needs.length > 0 && (
          <span className="faint small">
            {needs.length}
            {ended.hasNextPage && "+"}
          </span>
        )}
      </header>
      <div className="scroll" ref={list}>
        {trouble && <Trouble list={trouble} />}
        {!ended.data && !trouble && <Waiting />}
        {ended.data && needs.length === 0 && (
          <div className="empty">
            <h2>Nothing waits for you.</h2>
            <p>
              Tasks that failed, that nothing tries again, or that do not end when they are told to are shown here, each with what can be
              done.
            </p>
            <Link href="/tasks" className="btn">
              See all tasks
            </Link>
          </div>
        )}
        <ul className="needs" aria-label="What needs you">
          {needs.map((task) => (
            <Need key={task.id} task={task} />
          ))}
        </ul>
        {ended.hasNextPage && (
          <div className="task-more">
            <button type="button" className="btn" disabled={ended.isFetchingNextPage} onClick={() => void ended.fetchNextPage()}>
              {ended.isFetchingNextPage ? "Loading…" : "Show older"}
            </button>
          </div>
        )}
      </div>
    </main>
  );
}

function Need({ task }: { task: TaskSummary }) {
  const { ask, dialog } = useActions(task, () => {});
  const detail = useQuery(taskQuery(task.id)).data;
  const workspace = useQuery(workspacesQuery).data?.items.find(({ id }) => id === task.workspaceId)?.name;
  const interrupted = isInterrupted(task);
  const at = task.interruptedAt ?? task.endedAt ?? task.createdAt;
  const why = interrupted ? "it was told to end and does not" : whyOf(task);
  return (
    <li className="need">
      <StateGlyph state={glyphOf(task)} />
      <div className="grow">
        <div className="line">
          <Link href={`/tasks/${task.id}`} className="strong cut need-title" data-row>
            {visible(task.title)}
          </Link>
          <time className="end xs faint" dateTime={at} title={exactly(at)}>
            {when(at)}
          </time>
        </div>
        <p className="small need-why">
          <b className={interrupted ? "is-wait" : "is-fail"}>{stateWord(task)}</b>: {visible(why)}
        </p>
        <p className="small dim">
          {sourceOf(task)}
          {workspace && ` · ${visible(workspace)}`} · attempt {task.attemptCount} of {task.maxAttempts}
        </p>
        {interrupted && <p className="small dim">It keeps its place until it heeds, or until popagent is started again.</p>}
        {detail?.explanation && <p className="small dim">{visible(detail.explanation)}</p>}
        {detail?.remediationId && task.state === "failed" && <Repaired by={detail.remediationId} className="small dim" />}
        {!interrupted && (
          <div className="line wrap need-acts">
            <button type="button" className="btn dense" onClick={() => ask("retry")}>
              <Icon name="retry" />
              Try again…
            </button>
            <button type="button" className="btn dense" onClick={() => ask("resolve")}>
              Resolve…
            </button>
            <button type="button" className="btn plain dense danger" onClick={() => ask("delete")}>
              Delete…
            </button>
          </div>
        )}
      </div>
      {dialog}
    </li>
  );
}
