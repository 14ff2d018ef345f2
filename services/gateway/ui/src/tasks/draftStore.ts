import { draftStore } from "../editing/draftStore";
import type { Draft } from "./form";

/** The one that is new. */
export const { setDraft, useDraft } = draftStore<Draft>({});
