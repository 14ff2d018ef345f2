import { draftStore } from "../editing/draftStore";
import type { Draft } from "./form";

/** By the schedule's id, and one that is new. */
export const { setDraft, useDrafts, useDraft } = draftStore<Draft>({});
