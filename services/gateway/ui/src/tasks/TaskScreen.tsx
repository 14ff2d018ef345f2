import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { Link, useLocation } from "wouter";
import { useCommands } from "../app/commands";
import { Prose } from "../chat/Prose";
import { useStick } from "../chat/useStick";
import { Loading } from "../settings/Loading";
import { CopyButton } from "../ui/CopyButton";
import { Icon, StopIcon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import { StateGlyph } from "../ui/StateGlyph";
import { WIDE, useMedia } from "../ui/media";
import { useNow } from "../ui/useNow";
import { useTitle } from "../ui/useTitle";
import { visible } from "../ui/visible";
import { duration, exactly, when } from "../ui/words";
import { Facts } from "./Facts";
import { Standing } from "./Standing";
import { Transcript } from "./Transcript";
import { useActions } from "./actions";
import { type TaskDetail, taskQuery } from "./queries";
import { chipOf, isOver, mayResolve, mayRetry, stateWord } from "./words";

/** One task: what it was told, what it did, what came of it, and what can be done with it. */
export function TaskScreen({ id }: { id: string }) {
  const task = useQuery(taskQuery(id));
  const isGone = task.data === null;
  useTitle(task.data?.title ?? "Task");
  if (task.data) return <Shown task={task.data} />;
  return (
    <main className="main tasks">
      <header className="bar">
        <Back />
        <h1>Task</h1>
      </header>
      <div className="scroll">
        {isGone ? (
          <div className="empty">
            <h2>There is no such task</h2>
            <p>It was deleted, or the address is wrong.</p>
            <Link href="/tasks" className="btn">
              See all tasks
            </Link>
          </div>
        ) : (
          <div className="task-page">
            <Loading query={task} what="the task">
              {() => null}
            </Loading>
          </div>
        )}
      </div>
    </main>
  );
}

function Back() {
  return (
    <Link href="/tasks" className="btn plain square" aria-label="All tasks">
      <Icon name="left" />
    </Link>
  );
}

function Shown({ task }: { task: TaskDetail }) {
  const [, navigate] = useLocation();
  const isWide = useMedia(WIDE);
  const isActive = !isOver(task);
  const now = useNow(isActive);
  const { ask, again, dialog } = useActions(task, () => navigate("/tasks", { replace: true }));
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isPinned, pin } = useStick(scroller, content);
  const isRunning = task.state === "running" || task.state === "cancelling";
  useCommands([
    isActive && { id: "cancel task", title: "Cancel the task", group: "Do", keys: "shift+escape", run: () => ask("cancel") },
    mayRetry(task) && { id: "retry task", title: "Try the task once more", group: "Do", run: () => ask("retry") },
    mayResolve(task) && { id: "resolve task", title: "Resolve the task", group: "Do", run: () => ask("resolve") },
  ]);
  const facts = <Facts task={task} now={now} />;
  return (
    <main className="main tasks">
      <header className="bar">
        <Back />
        <h1 className="cut" title={task.title}>
          {visible(task.title)}
        </h1>
        <span className={`chip ${chipOf(task)}`} role="status">
          {stateWord(task)}
        </span>
        <span className="end line">
          {isActive && (
            <button type="button" className="btn" disabled={task.state === "cancelling"} onClick={() => ask("cancel")}>
              <StopIcon />
              {task.state === "cancelling" ? (
                "Cancelling…"
              ) : (
                <span>
                  Cancel<span className="not-phone"> task</span>
                </span>
              )}
            </button>
          )}
          <Menu
            label="More of this task"
            items={[
              ...(mayRetry(task) ? [{ label: "Try again…", icon: "retry" as const, onSelect: () => ask("retry") }] : []),
              ...(mayResolve(task) ? [{ label: "Resolve…", icon: "check" as const, onSelect: () => ask("resolve") }] : []),
              { label: "Give it as a new one…", icon: "plus", onSelect: again },
              ...(isActive ? [] : [{ label: "Delete…", icon: "trash" as const, danger: true, onSelect: () => ask("delete") }]),
            ]}
          >
            <Icon name="more" />
          </Menu>
        </span>
      </header>
      <div className="task-columns">
        <div className="scroll" ref={scroller} tabIndex={0} role="region" aria-label="What it was told and did">
          <div className="task-page" ref={content}>
            <section className="said" aria-label="What is to be done">
              <div className="said-text">{visible(task.prompt)}</div>
            </section>
            {!isWide && (
              <details className="task-details">
                <summary>Details</summary>
                {facts}
              </details>
            )}
            <Transcript task={task} />
            <Standing task={task} now={now} onResolve={() => ask("resolve")} onRetry={() => ask("retry")} onAgain={again} />
            {task.output && <Result task={task} />}
          </div>
        </div>
        {isWide && (
          <aside className="task-side" aria-label="Facts">
            {facts}
          </aside>
        )}
        {!isPinned && isRunning && (
          <button type="button" className="btn task-pill" onClick={pin}>
            Newest
            <Icon name="down" />
          </button>
        )}
      </div>
      {dialog}
    </main>
  );
}

function Result({ task }: { task: TaskDetail }) {
  const took = task.startedAt && task.endedAt ? Date.parse(task.endedAt) - Date.parse(task.startedAt) : null;
  return (
    <section className="task-result" aria-label="Result">
      <Prose text={task.output} isGrowing={false} />
      <p className="stamp">
        <StateGlyph state="completed" />
        <b>Done</b>
        {task.endedAt && <time dateTime={task.endedAt} title={exactly(task.endedAt)}>{when(task.endedAt)}</time>}
        {took !== null && took >= 0 && <span>{duration(took)}</span>}
        <CopyButton text={task.output} label="Copy the result" />
      </p>
    </section>
  );
}
