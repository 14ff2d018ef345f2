import { ORCHESTRATOR } from "../agents/queries";
import type { TaskSummary } from "../contracts";
import type { Glyph } from "../ui/StateGlyph";
import { duration, when } from "../ui/words";
import type { TaskState } from "./lists";

export type ErrorClass = NonNullable<TaskSummary["lastErrorClass"]>;

const STATES: Readonly<Record<TaskState, string>> = {
  queued: "Queued",
  running: "Running",
  cancelling: "Cancelling",
  completed: "Done",
  failed: "Failed",
  cancelled: "Cancelled",
  "dead-letter": "Dead letter",
};
const GLYPHS: Readonly<Record<TaskState, Glyph>> = {
  queued: "queued",
  running: "running",
  cancelling: "running",
  completed: "completed",
  failed: "failed",
  cancelled: "stopped",
  "dead-letter": "dead",
};
const CHIPS: Partial<Record<TaskState, string>> = { running: "live", cancelling: "live", failed: "fail", "dead-letter": "fail" };

/** What ended an attempt, as a person would say it. */
export const CAUSES: Readonly<Record<ErrorClass, string>> = {
  provider: "The model's server failed",
  "rate-limit": "The model's server refused for a while",
  database: "The database was away",
  infrastructure: "A part of popagent was away",
  restart: "popagent was restarted",
  browser: "The browser failed",
  timeout: "It took longer than a task may",
  "runner-lost": "The process that ran it was gone",
  stale: "Nobody had ended it long after its time",
  "hook-denied": "A hook refused it",
  cancelled: "It was cancelled",
  validation: "What it was given cannot be done",
  permission: "It may not do what it tried",
  configuration: "Something is not set up",
  unknown: "It failed",
};

interface Named {
  id: string;
  name: string;
}

type Standing = Pick<TaskSummary, "state" | "interruptedAt">;

/** Told to end, and still there: it keeps its place until it heeds. */
export function isInterrupted(task: Standing): boolean {
  return task.interruptedAt !== null && (task.state === "running" || task.state === "cancelling");
}

export function stateWord(task: Standing): string {
  return isInterrupted(task) ? "Interrupted" : STATES[task.state];
}

export function glyphOf(task: Standing): Glyph {
  return isInterrupted(task) ? "interrupted" : GLYPHS[task.state];
}

export function chipOf(task: Standing): string {
  return isInterrupted(task) ? "wait" : (CHIPS[task.state] ?? "");
}

export function isOver(task: Pick<TaskSummary, "state">): boolean {
  return !["queued", "running", "cancelling"].includes(task.state);
}

export function mayResolve(task: Pick<TaskSummary, "state">): boolean {
  return ["failed", "cancelled", "dead-letter"].includes(task.state);
}

/** What a person can give one more attempt: it stays the same task, and knows what it had begun. */
export function mayRetry(task: Pick<TaskSummary, "state">): boolean {
  return task.state === "failed" || task.state === "dead-letter";
}

/** The cause and what was said of it; the same words are not said twice. */
export function whyOf(task: Pick<TaskSummary, "lastErrorClass" | "lastError">): string {
  const cause = task.lastErrorClass === null ? "" : CAUSES[task.lastErrorClass];
  const said = task.lastError?.trim() ?? "";
  if (!cause || task.lastErrorClass === "unknown") return said || cause;
  return said ? `${cause}: ${said}` : `${cause}.`;
}

/** The second line of a row: what it does, or why it does not. */
export function lineOf(task: TaskSummary, now: number): string {
  if (isInterrupted(task)) return "It was told to end and does not. It keeps its place until it heeds.";
  switch (task.state) {
    case "queued":
      if (task.lastErrorClass === null) return "Waits for a place";
      return `${again(task, now)} ${whyOf(task)}`;
    case "running":
      return task.attemptCount > 1 && task.lastErrorClass ? `Attempt ${task.attemptCount}, after: ${whyOf(task)}` : "";
    case "cancelling":
      return "Was told to end";
    case "completed":
      return plainly(task.excerpt);
    case "cancelled":
      return "";
    default:
      return whyOf(task);
  }
}

/** The words of Markdown without its marks, as far as a line needs it. */
export function plainly(markdown: string): string {
  return markdown
    .replace(/\|?(?:\s*:?-{3,}:?\s*\|)+|```\w*/g, " ")
    .replace(/(^|\s)(?:#{1,6}|[-*>])(?=\s)/g, "$1")
    .replace(/\*\*|`|\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\s*\|\s*/g, " ")
    .replace(/\s+/g, " ")
    .trim();
}

/** The runner's sentence about the end of an attempt, its class in words. */
export function endingOf(sentence: string): string {
  const [, attempt, cause = "", said = ""] = /^(Attempt \d+ ended) \(([a-z-]+)\)\.\s*(.*)$/s.exec(sentence) ?? [];
  return attempt && cause in CAUSES ? `${attempt}. ${whyOf({ lastErrorClass: cause as ErrorClass, lastError: said })}` : sentence;
}

/** When a task that failed for a passing reason is tried again. */
export function again(task: Pick<TaskSummary, "nextAttemptAt">, now: number): string {
  const when = until(task.nextAttemptAt, now);
  return `Tried again ${when === "next" ? "when a place is free" : when}.`;
}

/** next, in 40 s, in 3 min: when something is due. */
export function until(iso: string | null, now: number): string {
  const ms = iso === null ? 0 : Date.parse(iso) - now;
  if (ms < 1_000) return "next";
  return `in ${ms < 60_000 ? `${Math.ceil(ms / 1_000)} s` : duration(Math.round(ms / 60_000) * 60_000)}`;
}

/** The time of a row: how long it waits or runs, when it is tried, when it ended. */
export function timeOf(task: TaskSummary, now: number): string {
  if (task.state === "queued") {
    const due = until(task.nextAttemptAt, now);
    // Each that waits would be the next one.
    return due === "next" ? duration(Math.max(0, now - Date.parse(task.createdAt))) : due;
  }
  if (!isOver(task)) return duration(Math.max(0, now - Date.parse(task.startedAt ?? task.createdAt)));
  return when(task.endedAt ?? task.createdAt);
}

/** Who does it, and where if there is more than one place. */
export function byOf(task: Pick<TaskSummary, "agentId" | "workspaceId">, agents: readonly Named[], workspaces: readonly Named[]): string {
  const agentId = task.agentId ?? ORCHESTRATOR;
  const agent = agents.find(({ id }) => id === agentId)?.name ?? task.agentId ?? "Orchestrator";
  if (workspaces.length < 2) return agent;
  return `${agent} · ${workspaces.find(({ id }) => id === task.workspaceId)?.name ?? task.workspaceId}`;
}

export function sourceOf(task: TaskSummary): string {
  if (task.remediates) return "Repair";
  if (task.scheduleId) return "Schedule";
  return task.source === "self-update" ? "System" : "You";
}
