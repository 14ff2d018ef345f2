import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api, query, request } from "../api/client";
import { SCHEDULES, client } from "../app/queries";
import type { CronPreview, ScheduleList, ScheduleRunList, ScheduleView } from "../contracts";

/** Schedules on their way out: whatever is loaded meanwhile, they are not shown. */
export const leaving = new Set<string>();

export const schedulesQuery = queryOptions({
  queryKey: [SCHEDULES, "list"],
  queryFn: async ({ signal }) => {
    const list = await api.get<ScheduleList>("/api/schedules", signal);
    return { ...list, items: list.items.filter((schedule) => !leaving.has(schedule.id)) };
  },
});

export const runsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: [SCHEDULES, "runs", id],
    queryFn: ({ pageParam, signal }) =>
      api.get<ScheduleRunList>(`/api/schedules/${encodeURIComponent(id)}/runs${query({ limit: 20, cursor: pageParam })}`, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    staleTime: 0,
  });

/** What a rule means; its times pass, so it is asked anew each time it is shown. */
export const previewQuery = (cron: string) =>
  queryOptions({
    queryKey: ["cron", cron],
    queryFn: ({ signal }) => api.get<CronPreview>(`/api/schedules/preview?${new URLSearchParams({ cron })}`, signal),
    staleTime: 30_000,
  });

/** Show a schedule as the server has just told it, by name; what was heard of a newer one stays. */
export function keepSchedule(schedule: ScheduleView): void {
  client.setQueryData(schedulesQuery.queryKey, (list) => {
    if (!list || list.items.some((each) => each.id === schedule.id && each.revision > schedule.revision)) return list;
    const items = [...list.items.filter((each) => each.id !== schedule.id), schedule];
    items.sort((a, b) => a.name.localeCompare(b.name));
    return { ...list, items };
  });
}

export function dropSchedule(id: string): void {
  client.setQueryData(schedulesQuery.queryKey, (list) => list && { ...list, items: list.items.filter((each) => each.id !== id) });
}

/** One key for one wish: sent again because no answer came, it runs once. */
export async function runNow(id: string): Promise<void> {
  await request("POST", `/api/schedules/${encodeURIComponent(id)}/run`, { headers: { "idempotency-key": crypto.randomUUID() } });
  loadSchedules();
}

/** Load them again, with what came of them. */
export function loadSchedules(): void {
  void client.invalidateQueries({ queryKey: [SCHEDULES] });
}
