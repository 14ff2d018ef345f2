import { draftStore } from "../editing/draftStore";
import type { Draft } from "./form";

/** By agent and skill, as `draftOf` names them. */
export const { setDraft, useDrafts, useDraft } = draftStore<Draft>({});

export function draftOf(agentId: string, skillId: string): string {
  return `${agentId}/${skillId}`;
}
