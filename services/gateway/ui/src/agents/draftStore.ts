import { useSyncExternalStore } from "react";
import type { Draft } from "./draft";

const NONE: Draft = {};
/** What was typed and not saved, by agent; it outlives a look at another screen, and closing the tab asks. */
let drafts: Readonly<Record<string, Draft>> = {};
const watchers = new Set<() => void>();

export function setDraft(agent: string, change: (before: Draft) => Draft): void {
  const { [agent]: before = NONE, ...others } = drafts;
  const after = change(before);
  const hadSome = Object.keys(drafts).length > 0;
  drafts = Object.keys(after).length > 0 ? { ...others, [agent]: after } : others;
  const hasSome = Object.keys(drafts).length > 0;
  if (!hadSome && hasSome) addEventListener("beforeunload", ask);
  if (hadSome && !hasSome) removeEventListener("beforeunload", ask);
  for (const watcher of watchers) watcher();
}

export function useDrafts(): Readonly<Record<string, Draft>> {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => drafts,
  );
}

export function useDraft(agent: string): Draft {
  return useDrafts()[agent] ?? NONE;
}

function ask(event: BeforeUnloadEvent): void {
  event.preventDefault();
}
