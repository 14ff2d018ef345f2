import { useSyncExternalStore } from "react";
import type { Draft } from "./draft";

/** What was typed and not saved outlives a look at another screen; closing the tab asks. */
let draft: Draft = {};
const watchers = new Set<() => void>();

export function setDraft(change: (before: Draft) => Draft): void {
  const before = Object.keys(draft).length;
  draft = change(draft);
  const after = Object.keys(draft).length;
  if (before === 0 && after > 0) addEventListener("beforeunload", ask);
  if (before > 0 && after === 0) removeEventListener("beforeunload", ask);
  for (const watcher of watchers) watcher();
}

export function useDraft(): Draft {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => draft,
  );
}

function ask(event: BeforeUnloadEvent): void {
  event.preventDefault();
}
