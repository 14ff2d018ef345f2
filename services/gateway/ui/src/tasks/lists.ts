import { type InfiniteData, type QueryClient, infiniteQueryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { api, query } from "../api/client";
import type { TaskList, TaskSummary } from "../contracts";

export type TaskState = TaskSummary["state"];

/** Which tasks a list shows. */
export interface TaskFilter {
  states: readonly TaskState[];
  workspaceId: string | null;
  scheduleId: string | null;
  q: string;
}

/** What waits for a person, whoever runs it and however old. */
export const NEEDS: readonly TaskState[] = ["failed", "dead-letter"];
/** What holds a place; among it is what was told to end and does not. */
export const ACTIVE: readonly TaskState[] = ["running", "cancelling"];

/** Everything that is known of tasks is kept below this key. */
export const TASKS = "tasks";
const PAGE = 50;

export function of(states: readonly TaskState[], more: Partial<TaskFilter> = {}): TaskFilter {
  return { states, workspaceId: null, scheduleId: null, q: "", ...more };
}

export const tasksQuery = (filter: TaskFilter) =>
  infiniteQueryOptions({
    queryKey: [TASKS, "list", filter],
    queryFn: ({ pageParam, signal }) => {
      const { states, ...rest } = filter;
      return api.get<TaskList>(`/api/tasks${query({ state: states.join(","), ...rest, limit: PAGE, cursor: pageParam })}`, signal);
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
  });

export const needsQuery = tasksQuery(of(NEEDS));
export const activeQuery = tasksQuery(of(ACTIVE));

/** What waits for a person, newest first; `more` when the lists go on behind what is loaded. Asked for when it is `wanted`. */
export function useNeeds(wanted = true): { needs: TaskSummary[]; running: number; more: boolean } {
  const ended = useInfiniteQuery({ ...needsQuery, enabled: wanted });
  const active = useInfiniteQuery({ ...activeQuery, enabled: wanted });
  const running = active.data?.pages.flatMap((page) => page.items) ?? [];
  const needs = [...running.filter((task) => task.interruptedAt !== null), ...(ended.data?.pages.flatMap((page) => page.items) ?? [])];
  return { needs, running: running.length, more: ended.hasNextPage };
}

function belongs(task: TaskSummary, filter: TaskFilter): boolean {
  return (
    filter.states.includes(task.state) &&
    (filter.workspaceId === null || filter.workspaceId === task.workspaceId) &&
    (filter.scheduleId === null || filter.scheduleId === task.scheduleId) &&
    task.title.toLowerCase().includes(filter.q.toLowerCase())
  );
}

function isNewer(one: TaskSummary, other: TaskSummary): boolean {
  return one.createdAt === other.createdAt ? one.id > other.id : one.createdAt > other.createdAt;
}

/** The list with a task as it was just told: newest first. What lies behind the last loaded page comes with the next. */
export function withTask(data: InfiniteData<TaskList>, filter: TaskFilter, task: TaskSummary): InfiniteData<TaskList> {
  const known = data.pages.flatMap((page) => page.items).find((each) => each.id === task.id);
  if (known && known.version > task.version) return data;
  const fits = belongs(task, filter);
  if (!known && !fits) return data;
  const pages = data.pages.map((page) => ({ ...page, items: page.items.filter((each) => each.id !== task.id) }));
  if (!fits) return { ...data, pages };
  const page = pages.find(({ items }) => items.some((each) => isNewer(task, each)));
  if (page) page.items.splice(page.items.findIndex((each) => isNewer(task, each)), 0, task);
  else if (pages.at(-1)?.nextCursor === null) pages.at(-1)?.items.push(task);
  return { ...data, pages };
}

function everyList(client: QueryClient, change: (data: InfiniteData<TaskList>, filter: TaskFilter) => InfiniteData<TaskList>): void {
  for (const each of client.getQueryCache().findAll({ queryKey: [TASKS, "list"] })) {
    const data = each.state.data as InfiniteData<TaskList> | undefined;
    if (data) client.setQueryData(each.queryKey, change(data, each.queryKey[2] as TaskFilter));
    // What is on its way may have been read before this happened.
    if (each.state.fetchStatus === "fetching") void client.invalidateQueries({ queryKey: each.queryKey, exact: true });
  }
}

/** Put a task where it belongs now in every list, and read it again where it is open. */
export function noteTask(client: QueryClient, task: TaskSummary): void {
  everyList(client, (data, filter) => withTask(data, filter, task));
  void client.invalidateQueries({ queryKey: [TASKS, "one", task.id] });
  void client.invalidateQueries({ queryKey: [TASKS, "said", task.id] });
}

export function dropTask(client: QueryClient, id: string): void {
  everyList(client, (data) => ({
    ...data,
    pages: data.pages.map((page) => ({ ...page, items: page.items.filter((each) => each.id !== id) })),
  }));
  // Where it is open it is gone, without asking for what is not there.
  client.setQueryData([TASKS, "one", id], (known: unknown) => (known === undefined ? undefined : null));
}
