import type { AgentPatch, AgentView } from "../contracts";
import { plural } from "../ui/words";

/** What of a profile can be changed, in the order of the form. */
const FIELDS = [
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

/** What was put into a field, and what was stored when that began. */
export interface Typed {
  value: Value;
  base: Value;
}

export type Draft = Readonly<Partial<Record<Field, Typed>>>;

/** The longest texts that the contract takes, in characters. */
export const LONGEST: Partial<Record<Field, number>> = {
  name: 80,
  delegationDescription: 1_000,
  instructions: 20_000,
  sourceUrl: 2_000,
  modelOverride: 200,
};

function same(one: Value, other: Value): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** What the form shows: the stored profile with what was typed over it. */
export function shown(stored: AgentView, draft: Draft): AgentView {
  const typed = Object.entries(draft).map(([field, { value }]) => [field, value]);
  return { ...stored, ...Object.fromEntries(typed) } as AgentView;
}

export function put(draft: Draft, field: Field, value: Value, stored: AgentView): Draft {
  // Put back: nothing is left to save.
  if (same(value, stored[field])) return without(draft, [field]);
  return { ...draft, [field]: { value, base: draft[field]?.base ?? stored[field] } };
}

/** The fields that differ from what is stored, wrong ones included. */
export function changes(draft: Draft, stored: AgentView): Field[] {
  return FIELDS.filter((field) => draft[field] !== undefined && !same(draft[field].value, stored[field]));
}

/** Where somebody stored something else meanwhile, and not the same. */
export function conflicts(draft: Draft, stored: AgentView): Field[] {
  return changes(draft, stored).filter((field) => !same(draft[field]?.base ?? null, stored[field]));
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

/** What is sent: only what changed, and the revision that it was compared with. */
export function patchOf(draft: Draft, stored: AgentView): AgentPatch {
  const values = changes(draft, stored).map((field) => [field, draft[field]?.value]);
  return { revision: stored.revision, ...Object.fromEntries(values) } as AgentPatch;
}

/** Settle a conflict for what was typed. */
export function keepMine(draft: Draft, field: Field, stored: AgentView): Draft {
  const typed = draft[field];
  return typed ? { ...draft, [field]: { ...typed, base: stored[field] } } : draft;
}

export function without(draft: Draft, fields: readonly Field[]): Draft {
  return Object.fromEntries(Object.entries(draft).filter(([field]) => !fields.includes(field as Field)));
}

/** After a save: what was sent is stored; what was typed since is kept. */
export function afterSave(draft: Draft, sent: Draft, stored: AgentView): Draft {
  let rest: Draft = {};
  for (const field of FIELDS) {
    const typed = draft[field];
    if (typed && !same(typed.value, sent[field]?.value ?? null)) rest = { ...rest, [field]: { ...typed, base: stored[field] } };
  }
  return rest;
}
