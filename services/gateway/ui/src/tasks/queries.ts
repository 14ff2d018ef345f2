import { queryOptions } from "@tanstack/react-query";
import { ApiError, api, query, request } from "../api/client";
import { client } from "../app/queries";
import type { CreateTaskBody, TaskSummary, TaskView, TranscriptPage } from "../contracts";
import { TASKS, noteTask } from "./lists";
import { type Transcript, type Written, goesOn, withNewer, withOlder } from "./transcript";

/** The records are read apart, by what was written since. */
export type TaskDetail = Omit<TaskView, "activity" | "previousCursor" | "revision">;

/** Null when there is no such task, or none any more. */
export const taskQuery = (id: string) =>
  queryOptions({
    queryKey: [TASKS, "one", id],
    queryFn: async ({ signal }): Promise<TaskDetail | null> => {
      try {
        return await api.get<TaskView>(`/api/tasks/${encodeURIComponent(id)}?limit=0`, signal);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      }
    },
  });

const transcriptKey = (id: string) => [TASKS, "said", id];

async function read(id: string, range: { before?: number; after?: number }, signal?: AbortSignal): Promise<TranscriptPage> {
  return api.get<TranscriptPage>(`/api/tasks/${encodeURIComponent(id)}/transcript${query(range)}`, signal);
}

// A page is cut by its size too; one with fewer records than this was not.
const SMALL_PAGE = 16;

/** Asks for what is new until that is all: a page holds what was written longest ago. */
export const transcriptQuery = (id: string) =>
  queryOptions({
    queryKey: transcriptKey(id),
    queryFn: async ({ signal }): Promise<Transcript> => {
      let known = client.getQueryData<Transcript>(transcriptKey(id));
      if (!known) {
        const { records, previousCursor, revision } = await read(id, {}, signal);
        return { records, previousCursor, revision };
      }
      for (;;) {
        const page = await read(id, { after: known.revision }, signal);
        // What was told or read of earlier records meanwhile is kept.
        known = withNewer(withNewer(client.getQueryData<Transcript>(transcriptKey(id)) ?? known, known), page);
        if (page.records.length < SMALL_PAGE) return known;
      }
    },
    structuralSharing: false,
    staleTime: 0,
  });

/** Records as a stream tells of them: those behind the revision `after`. */
export type NewRecords = Written & { after: number };

/** Put what was told to what is read; where some between them are missing, they are asked for. */
export function noteRecords(id: string, news: NewRecords): void {
  const known = client.getQueryData<Transcript>(transcriptKey(id));
  if (known && goesOn(known, news.after)) client.setQueryData<Transcript>(transcriptKey(id), withNewer(known, news));
  else void client.invalidateQueries({ queryKey: transcriptKey(id) });
}

export async function readOlder(id: string, before: number): Promise<void> {
  const page = await read(id, { before });
  client.setQueryData<Transcript>(transcriptKey(id), (known) => known && withOlder(known, page));
}

/** The key makes a repeated request give the task that the first one made. */
export async function giveTask(body: CreateTaskBody, key: string): Promise<TaskSummary> {
  const answer = await request("POST", "/api/tasks", { body, headers: { "idempotency-key": key } });
  const task = (await answer.json()) as TaskSummary;
  noteTask(client, task);
  return task;
}

async function act(id: string, what: string, body?: unknown): Promise<void> {
  noteTask(client, await api.post<TaskSummary>(`/api/tasks/${encodeURIComponent(id)}/${what}`, body));
}

export const cancelTask = (id: string) => act(id, "cancel");
export const retryTask = (id: string) => act(id, "retry");
export const resolveTask = (id: string, evidence: string) => act(id, "resolve", { evidence });
