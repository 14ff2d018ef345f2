import { queryOptions } from "@tanstack/react-query";
import { api } from "../api/client";
import type { DetectedServers, ModelConnectionView } from "../contracts";

export const detectQuery = queryOptions({
  queryKey: ["detected-servers"],
  queryFn: ({ signal }) => api.get<DetectedServers>("/api/models/detect", signal),
  staleTime: 0,
  gcTime: 0,
  retry: false,
});

/** Whether a key that is stored for `stored` may be kept for `typed`. */
export function isSameServer(stored: string | null, typed: string): boolean {
  try {
    return stored !== null && new URL(stored).origin === new URL(typed).origin;
  } catch {
    return false; // half typed
  }
}

export type KeyChoice = { kind: "kept" } | { kind: "given"; key: string } | { kind: "none" };

/** What is sent of the key: nothing keeps the stored one, null removes it. */
export function keyOf(view: ModelConnectionView, url: string, typed: string, removed: boolean): KeyChoice {
  if (typed.trim()) return { kind: "given", key: typed.trim() };
  return view.hasKey && !removed && isSameServer(view.url, url) ? { kind: "kept" } : { kind: "none" };
}

export function keyField(choice: KeyChoice): { key?: string | null } {
  if (choice.kind === "kept") return {};
  return { key: choice.kind === "given" ? choice.key : null };
}
