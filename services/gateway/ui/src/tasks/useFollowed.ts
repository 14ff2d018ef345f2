import { useEffect } from "react";
import { ResumedStream, whileInView } from "../api/resumed";
import type { ServerEvent } from "../api/sse";
import { client } from "../app/queries";
import type { TaskSummary } from "../contracts";
import { dropTask, noteTask } from "./lists";
import { type NewRecords, noteRecords, transcriptQuery } from "./queries";
import { isOver } from "./words";

/** Hear what a task says while it goes on and the page is in view, from what is read of it on. */
export function useFollowed(task: Pick<TaskSummary, "id" | "state">, isRead: boolean): void {
  const { id } = task;
  const isWanted = isRead && !isOver(task);
  useEffect(() => (isWanted ? whileInView(() => new TaskStream(id).start()) : undefined), [id, isWanted]);
}

class TaskStream extends ResumedStream {
  constructor(private readonly id: string) {
    const known = client.getQueryData(transcriptQuery(id).queryKey);
    super(`/api/tasks/${encodeURIComponent(id)}/events`, known ? String(known.revision) : null);
  }

  protected take({ event, data }: ServerEvent): void {
    if (event === "records") noteRecords(this.id, JSON.parse(data) as NewRecords);
    else if (event === "task") noteTask(client, JSON.parse(data) as TaskSummary);
    else if (event === "resync") void client.resetQueries({ queryKey: transcriptQuery(this.id).queryKey });
    else if (event === "deleted") dropTask(client, this.id);
  }
}
