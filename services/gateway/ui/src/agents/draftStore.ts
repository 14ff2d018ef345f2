import { draftStore } from "../editing/draftStore";
import type { Draft } from "./draft";

/** By the agent's id. */
export const { setDraft, useDrafts, useDraft } = draftStore<Draft>({});
