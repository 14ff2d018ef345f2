import { Link } from "wouter";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { visible } from "../ui/visible";
import type { TaskDetail } from "./queries";
import { again, glyphOf, isInterrupted, mayResolve, mayRetry, stateWord, whyOf } from "./words";

interface Acts {
  onResolve: () => void;
  onRetry: () => void;
  onAgain: () => void;
}

/** Where a task stands that is not simply done or at work: why, what follows, and what a person can do. */
export function Standing({ task, now, onResolve, onRetry, onAgain }: Acts & { task: TaskDetail; now: number }) {
  if (isInterrupted(task)) {
    return (
      <div className="remark wait">
        <StateGlyph state="interrupted" />
        <p className="grow">
          It was told to end and does not. It keeps its place until it heeds, or until popagent is started again; nobody else takes it
          meanwhile.
        </p>
      </div>
    );
  }
  if (task.state === "queued") {
    return (
      <div className="remark">
        <StateGlyph state="queued" />
        <div className="grow">
          <p>{task.lastErrorClass === null ? "It waits for a place." : again(task, now)}</p>
          {task.lastErrorClass !== null && <p className="dim">Attempt {task.attemptCount} ended: {visible(whyOf(task))}</p>}
        </div>
      </div>
    );
  }
  if (task.resolution !== null) {
    return (
      <div className="remark ok">
        <StateGlyph state="completed" />
        <div className="grow">
          <p className="strong">A person called it done</p>
          <p className="task-evidence">{visible(task.resolution)}</p>
          {task.lastErrorClass !== null && <p className="dim">It had ended so: {visible(whyOf(task))}</p>}
        </div>
      </div>
    );
  }
  if (!mayResolve(task)) return null;
  const isBad = task.state !== "cancelled";
  return (
    <div className={`remark ${isBad ? "fail" : ""}`} role={isBad ? "alert" : undefined}>
      <StateGlyph state={glyphOf(task)} />
      <div className="grow">
        <p className="strong">
          {stateWord(task)}
          {isBad && `: ${visible(whyOf(task))}`}
        </p>
        {task.explanation && <p>{visible(task.explanation)}</p>}
        {task.remediationId && task.state === "failed" && <Repaired by={task.remediationId} />}
        <div className="line wrap">
          {mayRetry(task) && (
            <button type="button" className="btn dense" onClick={onRetry}>
              <Icon name="retry" />
              Try again…
            </button>
          )}
          <button type="button" className="btn dense" onClick={onResolve}>
            Resolve…
          </button>
          <button type="button" className="btn plain dense" onClick={onAgain}>
            Give it as a new one…
          </button>
        </div>
      </div>
    </div>
  );
}

/** What follows for a task that failed, and of which a repair was made. */
export function Repaired({ by, className = "" }: { by: string; className?: string }) {
  return (
    <p className={className}>
      <Link href={`/tasks/${by}`} className="link">
        A repair
      </Link>{" "}
      was made of it. When that has ended, this is tried once more; answer only if you know better.
    </p>
  );
}
