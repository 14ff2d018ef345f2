import { draftStore } from "../editing/draftStore";
import type { Draft } from "./form";

/** The one form of what posts start. */
export const { setDraft, useDraft } = draftStore<Draft>({});
