import type { AgentPatch, AgentView } from "../contracts";
import { type DraftOf, drafting } from "../editing/draft";
import { plural } from "../ui/words";

/** What of a profile can be changed, in the order of the form. */
export const FIELDS = [
  "name",
  "delegationDescription",
  "instructions",
  "sourceUrl",
  "workspaceAccess",
  "browserAccess",
  "delegable",
  "tools",
  "modelOverride",
] as const satisfies readonly (keyof AgentPatch & keyof AgentView)[];
export type Field = (typeof FIELDS)[number];
export type Value = AgentView[Field];
export type Draft = DraftOf<AgentView, Field>;

/** The longest texts that the contract takes, in characters. */
export const LONGEST: Partial<Record<Field, number>> = {
  name: 80,
  delegationDescription: 1_000,
  instructions: 20_000,
  sourceUrl: 2_000,
  modelOverride: 200,
};

export const drafts = drafting<AgentView, Field>(FIELDS);
export const { shown, put, changes, conflicts, keepMine, without, afterSave } = drafts;

/** What is sent: only what changed, and the revision that it was compared with. */
export function patchOf(draft: Draft, stored: AgentView): AgentPatch {
  return { revision: stored.revision, ...drafts.changed(draft, stored) };
}

/** What cannot be saved, in words; the server has the last word. */
export function errors(draft: Draft): Partial<Record<Field, string>> {
  const found: Partial<Record<Field, string>> = {};
  for (const field of FIELDS) {
    const value = draft[field]?.value;
    if (typeof value !== "string") continue;
    const length = [...value].length;
    const most = LONGEST[field] ?? length;
    if (value.trim() === "") found[field] = "This cannot be empty.";
    else if (length > most) found[field] = `${plural(length, "character")}; at most ${most.toLocaleString()} fit.`;
    else if (field === "sourceUrl" && !/^https?:\/\/\S+$/i.test(value)) found[field] = "An address that begins with https:// or http://.";
    else if (field === "modelOverride" && /\s/.test(value)) found[field] = "A model id has no blanks.";
  }
  return found;
}
