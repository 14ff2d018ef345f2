import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { agentsQuery } from "../agents/queries";
import { workspacesQuery } from "../app/queries";
import { schedulesQuery } from "../schedules/queries";
import { visible } from "../ui/visible";
import { duration, exactly } from "../ui/words";
import type { TaskDetail } from "./queries";
import { isOver } from "./words";

/** Whose work it is, where, by whom and when, with the ways to what belongs to it. */
export function Facts({ task, now }: { task: TaskDetail; now: number }) {
  const workspaces = useQuery(workspacesQuery).data?.items ?? [];
  const agents = useQuery(agentsQuery).data?.items ?? [];
  const schedules = useQuery({ ...schedulesQuery, enabled: task.scheduleId !== null }).data?.items ?? [];
  const ran = task.startedAt && (task.endedAt ? Date.parse(task.endedAt) : now) - Date.parse(task.startedAt);
  const to = (path: string, words: string) => (
    <Link href={path} className="link">
      {visible(words)}
    </Link>
  );
  const facts: [string, ReactNode][] = [
    ["Attempt", task.attemptCount === 0 ? "none yet" : `${task.attemptCount} of ${task.maxAttempts}`],
    ["Source", task.scheduleId ? to(`/schedules/${task.scheduleId}`, schedules.find(({ id }) => id === task.scheduleId)?.name ?? "A schedule") : task.source === "self-update" ? "The system" : "You"],
    ["Workspace", visible(workspaces.find(({ id }) => id === task.workspaceId)?.name ?? task.workspaceId)],
    ["Agent", task.agentId ? to(`/agents/${task.agentId}`, agents.find(({ id }) => id === task.agentId)?.name ?? task.agentId) : "Orchestrator"],
    ["Model", task.model ? visible(task.model) : "The default"],
    ["Priority", task.priority],
    ["Given", exactly(task.createdAt)],
    ["Began", task.startedAt && exactly(task.startedAt)],
    ["Ended", isOver(task) && task.endedAt && exactly(task.endedAt)],
    [isOver(task) ? "Took" : "Runs for", ran !== null && task.state !== "queued" && duration(Math.max(0, Number(ran)))],
    ["Repairs", task.remediates && to(`/tasks/${task.remediates}`, "the task that failed")],
    ["Repair", task.remediationId && to(`/tasks/${task.remediationId}`, "the task that repairs")],
    ["Chat", task.sessionId && to(`/chat/${task.sessionId}`, "where it was given")],
    ["Trace", task.traceId && to(`/observe/traces/${task.traceId}`, task.traceId.slice(0, 8))],
  ];
  return (
    <dl className="facts">
      {facts.map(
        ([label, value]) =>
          value !== null &&
          value !== false && (
            <div key={label} className="task-fact">
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
