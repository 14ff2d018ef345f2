import type { SkillFields, SkillPatch, SkillView } from "../contracts";
import type { Change } from "../editing/Unsaved";
import { type DraftOf, drafting } from "../editing/draft";
import { plural } from "../ui/words";

/** A name and what stands under it, as it is typed. */
export type Pair = readonly [name: string, text: string];

/** A skill as it is typed: what is absent is empty, and named texts stand in a row, so that two may have one name for a while. */
export interface SkillForm {
  name: string;
  description: string;
  instructions: string;
  references: readonly Pair[];
  license: string;
  compatibility: string;
  allowedTools: string;
  provenance: string;
  metadata: readonly Pair[];
  enabled: boolean;
}

export const FIELDS = [
  "name",
  "description",
  "instructions",
  "references",
  "license",
  "compatibility",
  "allowedTools",
  "provenance",
  "metadata",
  "enabled",
] as const;
export type Field = (typeof FIELDS)[number];
export type Draft = DraftOf<SkillForm, Field>;
export const drafts = drafting<SkillForm, Field>(FIELDS);
export const { shown, put, changes, conflicts, afterSave } = drafts;

export const LABELS: Readonly<Record<Field, string>> = {
  name: "Name",
  description: "Description",
  instructions: "Instructions",
  references: "References",
  license: "Licence",
  compatibility: "What it needs",
  allowedTools: "Allowed tools",
  provenance: "Where it comes from",
  metadata: "Notes of its author",
  enabled: "In use",
};

/** The longest texts that the contract takes, in characters. */
export const LONGEST = {
  name: 64,
  description: 1_024,
  instructions: 50_000,
  license: 500,
  compatibility: 500,
  allowedTools: 1_000,
  provenance: 500,
} as const;
const MOST = { references: 50, metadata: 32 } as const;
const LONGEST_NAME = { references: 200, metadata: 64 } as const;
const LONGEST_TEXT = { references: 100_000, metadata: 1_000 } as const;
const REFERENCES_BYTES = 400_000;

export const NEW = "new";
export const BLANK: SkillForm = {
  name: "",
  description: "",
  instructions: "",
  references: [],
  license: "",
  compatibility: "",
  allowedTools: "",
  provenance: "",
  metadata: [],
  enabled: true,
};

function sorted(texts: Readonly<Record<string, string>>): Pair[] {
  return Object.entries(texts).sort(([a], [b]) => (a < b ? -1 : 1));
}

export function formOf(skill: SkillFields | SkillView): SkillForm {
  const { name, description, instructions, enabled } = skill;
  return {
    ...{ name, description, instructions, enabled },
    references: sorted(skill.references),
    metadata: sorted(skill.metadata),
    license: skill.license ?? "",
    compatibility: skill.compatibility ?? "",
    allowedTools: skill.allowedTools ?? "",
    provenance: skill.provenance ?? "",
  };
}

export function bodyOf(form: SkillForm): SkillFields {
  const { description, instructions, enabled } = form;
  return {
    ...{ description, instructions, enabled },
    name: form.name.trim(),
    references: Object.fromEntries(form.references.map(([name, text]) => [name.trim(), text])),
    metadata: Object.fromEntries(form.metadata.map(([name, text]) => [name.trim(), text])),
    license: form.license.trim() || null,
    compatibility: form.compatibility.trim() || null,
    allowedTools: form.allowedTools.trim() || null,
    provenance: form.provenance.trim() || null,
  };
}

/** What is sent: only what changed, and the revision that it was compared with. */
export function patchOf(draft: Draft, skill: SkillView): SkillPatch {
  const stored = formOf(skill);
  const body = bodyOf(shown(stored, draft));
  return { revision: skill.revision, ...Object.fromEntries(changes(draft, stored).map((field) => [field, body[field]])) };
}

const size = (text: string) => new TextEncoder().encode(text).length;

function misnamed(field: "references" | "metadata", names: readonly string[]): string | null {
  const found = names.find((name, index) => names.indexOf(name) !== index);
  if (found !== undefined) return found === "" ? "Two have no name." : `Two are named “${found}”.`;
  if (names.includes("")) return "One has no name.";
  const long = names.find((name) => [...name].length > LONGEST_NAME[field]);
  if (long) return `“${long.slice(0, 40)}…” is too long for a name.`;
  if (field === "metadata") return null;
  const bad = names.find((name) => name.includes("\\") || name.split("/").some((part) => ["", ".", ".."].includes(part.trim()) || part !== part.trim()));
  if (bad !== undefined) return `“${bad}” is no path below references/, such as guide.md or api/errors.md.`;
  const below = names.find((name) => names.some((other) => name.startsWith(`${other}/`)));
  return below === undefined ? null : `“${below}” lies below another text, which is no folder.`;
}

function pairs(field: "references" | "metadata", value: readonly Pair[]): string | null {
  if (value.length > MOST[field]) return `${value.length}; at most ${MOST[field]} fit.`;
  const wrong = misnamed(
    field,
    value.map(([name]) => name.trim()),
  );
  if (wrong) return wrong;
  const long = value.find(([, text]) => [...text].length > LONGEST_TEXT[field]);
  if (long) return `“${long[0]}” has ${plural([...long[1]].length, "character")}; at most ${LONGEST_TEXT[field].toLocaleString()} fit.`;
  const bytes = value.reduce((sum, [name, text]) => sum + size(name) + size(text), 0);
  return field === "references" && bytes > REFERENCES_BYTES ? `${bytes.toLocaleString()} bytes together; at most ${REFERENCES_BYTES.toLocaleString()} fit.` : null;
}

function text(field: keyof typeof LONGEST, value: string): string | null {
  const length = [...value].length;
  const isNeeded = field === "name" || field === "description" || field === "instructions";
  if (isNeeded && value.trim() === "") return "This cannot be empty.";
  if (length > LONGEST[field]) return `${plural(length, "character")}; at most ${LONGEST[field].toLocaleString()} fit.`;
  if (field === "name" && !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(value.trim())) return "Small letters and digits, in words joined by hyphens: read-a-log.";
  return null;
}

/** What cannot be saved, in words; the server has the last word. */
export function errors(form: SkillForm): Partial<Record<Field, string>> {
  const found: [Field, string | null][] = (Object.keys(LONGEST) as (keyof typeof LONGEST)[]).map((field) => [field, text(field, form[field])]);
  for (const field of ["references", "metadata"] as const) found.push([field, pairs(field, form[field])]);
  return Object.fromEntries(found.filter(([, words]) => words !== null)) as Partial<Record<Field, string>>;
}

/** A value as it is read in a sentence. */
export function inWords(value: SkillForm[Field]): string {
  if (typeof value === "boolean") return value ? "On" : "Off";
  if (typeof value === "string") return value || "empty";
  return value.map(([name, words]) => `${name} (${plural([...words].length, "character")})`).join("\n") || "none";
}

/** What saving would change, each named text by itself. */
export function changesOf(stored: SkillForm, after: SkillForm): Change[] {
  return FIELDS.flatMap((field): Change[] => {
    const [old, now] = [stored[field], after[field]];
    if (JSON.stringify(old) === JSON.stringify(now)) return [];
    if (typeof old === "object" && typeof now === "object") return named(field === "references" ? "references/" : "", old, now);
    const kind = field === "instructions" || field === "description" ? "text" : "value";
    return [{ key: field, label: LABELS[field], kind, before: kind === "text" ? String(old) : inWords(old), after: kind === "text" ? String(now) : inWords(now) }];
  });
}

function named(folder: string, old: readonly Pair[], now: readonly Pair[]): Change[] {
  const [before, after] = [new Map(old), new Map(now)];
  const names = [...new Set([...before.keys(), ...after.keys()])];
  return names
    .filter((name) => before.get(name) !== after.get(name))
    .map((name) => {
      const isIn = before.has(name) && after.has(name);
      const label = `${folder}${name}${isIn ? "" : after.has(name) ? " (new)" : " (removed)"}`;
      return { key: `${folder}${name}`, label, kind: "text", before: before.get(name) ?? "", after: after.get(name) ?? "" };
    });
}
