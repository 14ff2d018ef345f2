import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, ApiError, isAway, query, request, sentence } from "../api/client";
import { events } from "../api/events";
import type { TraceList, TraceSummary, TraceView } from "../contracts";

/** Which traces a list shows. */
export interface TraceFilter {
  status: "running" | "ok" | "error" | null;
  sessionId: string | null;
  turnId: string | null;
  /** Without the traces of plain requests. */
  turnsOnly: boolean;
}

const RUNNING_MS = 1_000;
const AWAY_MS = 5_000;
const LATE_MS = 2_000;
/** Spans come in batches: what ended may still be on its way for so long. */
const LATE_FOR_MS = 8_000;
const NOT_STORED_YET_TRIES = 5;
const MOST_PAGES_FOLLOWED = 3;

export function isRunning(trace: { status: TraceSummary["status"] }): boolean {
  return trace.status === "running";
}

/** Why the store did not answer; a store that is away stops no work. */
export function storeTrouble(error: unknown): string {
  return isAway(error) ? "Store unreachable; work goes on." : sentence(error);
}

export const tracesQuery = (filter: TraceFilter) =>
  infiniteQueryOptions({
    queryKey: ["traces", filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<TraceList>(`/api/observability/traces${query({ ...filter, turnsOnly: filter.turnsOnly || null, limit: 50, cursor: pageParam })}`, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    // What happened while another screen was shown.
    staleTime: 0,
    // Asking again asks for every page that is shown: not for a long list.
    refetchInterval: ({ state: { data, error } }) => {
      // No event tells that the store is back.
      if (error) return AWAY_MS;
      return data && data.pages.length <= MOST_PAGES_FOLLOWED && data.pages[0]?.items.some(isRunning) ? LATE_MS : false;
    },
  });

/** A trace, and how far the clock of the server is ahead of this one. */
export interface SeenTrace {
  trace: TraceView;
  aheadMs: number;
}

export const traceQuery = (id: string) =>
  queryOptions({
    queryKey: ["trace", id],
    queryFn: async ({ signal }): Promise<SeenTrace> => {
      const response = await request("GET", `/api/observability/traces/${encodeURIComponent(id)}`, { signal });
      const aheadMs = Date.parse(response.headers.get("date") ?? "") - Date.now();
      // The header counts whole seconds.
      return { trace: (await response.json()) as TraceView, aheadMs: Math.abs(aheadMs) > 2_000 ? aheadMs : 0 };
    },
    staleTime: 0,
    // A link from an answer that runs may be followed before its first spans are stored.
    retry: (count, error) =>
      error instanceof ApiError &&
      ([0, 429, 503, 504].includes(error.status) ? count < 3 : error.status === 404 && count < NOT_STORED_YET_TRIES),
    retryDelay: (count, error) =>
      error instanceof ApiError && error.status === 404 ? 1_000 : Math.min(1_000 * 2 ** count, 8_000),
    refetchInterval: ({ state }) => (state.data ? next(state.data) : false),
  });

function next({ trace, aheadMs }: SeenTrace): number | false {
  if (trace.status === "running") return RUNNING_MS;
  const endedAt = Date.parse(trace.startedAt) + (trace.durationMs ?? 0);
  return Date.now() + aheadMs - endedAt < LATE_FOR_MS ? LATE_MS : false;
}

/** Call back after turns began or ended, as soon as their spans can be in the store; also soon after the first look. */
export function useAfterTurns(call: () => void): void {
  useEffect(() => {
    const timers = new Set<ReturnType<typeof setTimeout>>();
    const forget = () => {
      for (const timer of timers) clearTimeout(timer);
      timers.clear();
    };
    const later = () => {
      forget();
      for (const delay of [RUNNING_MS, 2 * LATE_MS]) timers.add(setTimeout(call, delay));
    };
    // A turn may just have ended, and nobody tells when its spans are stored.
    later();
    const off = events.hear((heard) => {
      if (heard.kind === "event" && heard.name.startsWith("turns-")) later();
    });
    return () => {
      off();
      forget();
    };
  }, [call]);
}

/** What somebody pasted: a trace, or else the id of a turn or a chat; an address counts by its last part. */
export function pasted(text: string): { trace: string } | { id: string } | null {
  const parts = text.trim().replace(/[?#].*$/, "").split("/");
  const id = parts.findLast((part) => part !== "") ?? "";
  if (/^[0-9a-f]{32}$/i.test(id)) return { trace: id.toLowerCase() };
  return /^[A-Za-z0-9_-]{1,64}$/.test(id) ? { id } : null;
}
