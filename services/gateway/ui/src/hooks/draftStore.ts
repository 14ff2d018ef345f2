import { draftStore } from "../editing/draftStore";
import type { Draft } from "./form";

/** By the hook's id, and one that is new. */
export const { setDraft, useDrafts, useDraft } = draftStore<Draft>({});
