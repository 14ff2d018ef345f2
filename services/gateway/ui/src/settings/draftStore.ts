import { draftStore } from "../editing/draftStore";
import type { Draft } from "./draft";

const RUNTIME = "agent-runtime";
const store = draftStore<Draft>({});

export function setDraft(change: (before: Draft) => Draft): void {
  store.setDraft(RUNTIME, change);
}

export function useDraft(): Draft {
  return store.useDraft(RUNTIME);
}
