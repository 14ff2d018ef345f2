import { useSyncExternalStore } from "react";

type Drafts<Draft> = Readonly<Record<string, Draft>>;

/** What was typed and not saved, by what it belongs to: it outlives a look at another screen, and closing the tab asks. */
export function draftStore<Draft extends object>(none: Draft) {
  let drafts: Drafts<Draft> = {};
  const watchers = new Set<() => void>();

  function watch(watcher: () => void): () => void {
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }

  function setDraft(of: string, change: (before: Draft) => Draft): void {
    const { [of]: before = none, ...others } = drafts;
    const after = change(before);
    drafts = Object.keys(after).length > 0 ? { ...others, [of]: after } : others;
    if (Object.keys(drafts).length > 0) addEventListener("beforeunload", ask);
    else removeEventListener("beforeunload", ask);
    for (const watcher of watchers) watcher();
  }

  function useDrafts(): Drafts<Draft> {
    return useSyncExternalStore(watch, () => drafts);
  }

  function useDraft(of: string): Draft {
    return useDrafts()[of] ?? none;
  }

  // One of its own for each store: what one has saved says nothing of the other.
  function ask(event: BeforeUnloadEvent): void {
    event.preventDefault();
  }

  return { setDraft, useDrafts, useDraft };
}
