import { queryOptions } from "@tanstack/react-query";
import { api } from "../api/client";
import { HOOKS, client } from "../app/queries";
import type { HookList, HookView } from "../contracts";

/** Hooks on their way out: whatever is loaded meanwhile, they are not shown. */
export const leaving = new Set<string>();

export const hooksQuery = queryOptions({
  queryKey: [HOOKS],
  queryFn: async ({ signal }) => {
    const list = await api.get<HookList>("/api/hooks", signal);
    return { ...list, items: list.items.filter((hook) => !leaving.has(hook.id)) };
  },
});

/** Show a hook as the server has just told it, where it belongs; what was heard of a newer one stays. */
export function keepHook(hook: HookView): void {
  client.setQueryData(hooksQuery.queryKey, (list) => {
    if (!list || list.items.some((each) => each.id === hook.id && each.revision > hook.revision)) return list;
    const items = [...list.items.filter((each) => each.id !== hook.id), hook];
    items.sort((a, b) => a.orderIndex - b.orderIndex || (a.id < b.id ? -1 : 1));
    return { ...list, items };
  });
}

export function dropHook(id: string): void {
  client.setQueryData(hooksQuery.queryKey, (list) => list && { ...list, items: list.items.filter((hook) => hook.id !== id) });
}

/** Load them again. */
export function loadHooks(): void {
  void client.invalidateQueries({ queryKey: hooksQuery.queryKey });
}
