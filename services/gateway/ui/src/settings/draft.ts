import { type AgentRuntimePatch, type AgentRuntimeView, type SettingField, agentRuntimeFields } from "../contracts";
import { count } from "../ui/words";
import type { Field, Value } from "./fields";

/** What was typed into a field, and what was stored when the typing began. */
export interface Typed {
  text: string;
  base: Value;
}

export type Draft = Readonly<Partial<Record<Field, Typed>>>;

export type Parsed = { value: Value; error?: never } | { error: string; value?: never };

const whole = new Intl.NumberFormat(undefined, { maximumFractionDigits: 0 });

/** A stored value as it is written into its field. */
export function textOf(value: Value): string {
  return value === null ? "" : String(value);
}

/** Read what was typed within the bounds of the contract; what is wrong is said with what is allowed. */
export function parse(spec: SettingField, text: string): Parsed {
  if (spec.choices) return spec.choices.includes(text) ? { value: text } : { error: `One of ${spec.choices.join(", ")}.` };
  if (spec.minimum !== undefined || spec.maximum !== undefined) return parseNumber(spec, text.trim());
  const wanted = spec.nullable ? text.trim() : text;
  if (wanted === "" && spec.nullable) return { value: null };
  const length = [...wanted].length;
  if (length < (spec.minLength ?? 0)) return { error: "This cannot be empty." };
  if (spec.maxLength !== undefined && length > spec.maxLength) {
    return { error: `${whole.format(length)} characters; at most ${whole.format(spec.maxLength)} fit.` };
  }
  return { value: wanted };
}

function parseNumber(spec: SettingField, text: string): Parsed {
  const { minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER } = spec;
  const range = `from ${whole.format(minimum)} to ${whole.format(maximum)}`;
  if (!/^-?\d+$/.test(text)) return { error: text ? `“${text.slice(0, 20)}” is no whole number. It goes ${range}.` : `A number is missing: ${range}.` };
  const value = Number(text);
  if (value < minimum || value > maximum) return { error: `${whole.format(value)} is too ${value < minimum ? "low" : "high"}. It goes ${range}.` };
  return { value };
}

/** How far a number may go, in words beside its label. */
export function bounds(spec: SettingField): string {
  if (spec.minimum !== undefined && spec.maximum !== undefined) return `${whole.format(spec.minimum)} to ${whole.format(spec.maximum)}`;
  return spec.maxLength !== undefined ? `up to ${count(spec.maxLength)} characters` : "";
}

/** The fields that differ from what is stored, wrong ones included. */
export function changes(draft: Draft, stored: AgentRuntimeView): Field[] {
  return (Object.entries(draft) as [Field, Typed][])
    .filter(([field, typed]) => {
      const parsed = parse(agentRuntimeFields[field], typed.text);
      return parsed.error !== undefined || parsed.value !== stored[field];
    })
    .map(([field]) => field);
}

/** Somebody stored something else meanwhile where this person typed, and not the same. */
export function conflicts(draft: Draft, stored: AgentRuntimeView): Field[] {
  return changes(draft, stored).filter((field) => draft[field]?.base !== stored[field]);
}

export function errors(draft: Draft): Partial<Record<Field, string>> {
  const found: Partial<Record<Field, string>> = {};
  for (const [field, typed] of Object.entries(draft) as [Field, Typed][]) {
    const { error } = parse(agentRuntimeFields[field], typed.text);
    if (error !== undefined) found[field] = error;
  }
  return found;
}

/** What is sent: only what changed, and the revision that it was compared with. */
export function patchOf(draft: Draft, stored: AgentRuntimeView): AgentRuntimePatch {
  const values = changes(draft, stored).map((field) => [field, parse(agentRuntimeFields[field], draft[field]?.text ?? "").value]);
  return { revision: stored.revision, ...Object.fromEntries(values) } as AgentRuntimePatch;
}

export function type(draft: Draft, field: Field, text: string, stored: AgentRuntimeView): Draft {
  const typed: Typed = { text, base: draft[field]?.base ?? stored[field] };
  // Typed back: nothing is left to save, unless somebody else stored something meanwhile.
  if (text === textOf(stored[field])) return without(draft, [field]);
  return { ...draft, [field]: typed };
}

/** Settle a conflict for what was typed. */
export function keepMine(draft: Draft, field: Field, stored: AgentRuntimeView): Draft {
  const typed = draft[field];
  return typed ? { ...draft, [field]: { ...typed, base: stored[field] } } : draft;
}

export function without(draft: Draft, fields: readonly Field[]): Draft {
  return Object.fromEntries(Object.entries(draft).filter(([field]) => !fields.includes(field as Field)));
}

/** After a save: what was sent is stored; what was typed since is kept. */
export function afterSave(draft: Draft, sent: Draft, stored: AgentRuntimeView): Draft {
  const rest: Record<string, Typed> = {};
  for (const [field, typed] of Object.entries(draft) as [Field, Typed][]) {
    if (typed.text !== sent[field]?.text) rest[field] = { ...typed, base: stored[field] };
  }
  return rest as Draft;
}
