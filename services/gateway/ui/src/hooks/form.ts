import type { CreateHookBody, HookView, PatchHookBody } from "../contracts";
import { type DraftOf, drafting } from "../editing/draft";
import { plural } from "../ui/words";
import { EVENTS, type HookEvent } from "./events";

/** A hook as it is typed: numbers and arguments are text, and what is not of its kind is kept until it is saved. */
export interface HookForm {
  name: string;
  event: HookEvent;
  matcher: string;
  kind: HookView["kind"];
  url: string;
  /** One argument a line. */
  argv: string;
  /** Empty keeps what is stored, null removes it. */
  secret: string | null;
  onFailure: HookView["onFailure"];
  timeoutMs: string;
  orderIndex: string;
  enabled: boolean;
}

export const FIELDS = ["name", "event", "matcher", "kind", "url", "argv", "secret", "onFailure", "timeoutMs", "orderIndex", "enabled"] as const;
export type Field = (typeof FIELDS)[number];
export type Draft = DraftOf<HookForm, Field>;
export const drafts = drafting<HookForm, Field>(FIELDS);
export const { shown, put, putAll, changes, conflicts, afterSave } = drafts;

export const LABELS: Readonly<Record<Field, string>> = {
  name: "Name",
  event: "When",
  matcher: "Which",
  kind: "What is called",
  url: "Address",
  argv: "Program",
  secret: "Secret",
  onFailure: "If it fails",
  timeoutMs: "Longest wait",
  orderIndex: "Order",
  enabled: "In use",
};

export const NEW = "new";
export const BLANK: HookForm = {
  name: "",
  event: "PreToolUse",
  matcher: "*",
  kind: "http",
  url: "",
  argv: "",
  secret: "",
  onFailure: "block",
  timeoutMs: "5000",
  orderIndex: "100",
  enabled: true,
};

export function formOf(hook: HookView): HookForm {
  const { name, event, matcher, kind, url, onFailure, enabled } = hook;
  return {
    ...{ name, event, matcher, kind, url, onFailure, enabled },
    argv: hook.argv.join("\n"),
    secret: "",
    timeoutMs: String(hook.timeoutMs),
    orderIndex: String(hook.orderIndex),
  };
}

/** Another event: what it cannot have goes with the old one. */
export function withEvent(draft: Draft, event: HookEvent, stored: HookForm): Draft {
  const before = EVENTS[shown(stored, draft).event];
  const { refusal, names } = EVENTS[event];
  let next = put(draft, "event", event, stored);
  if (!refusal) next = put(next, "onFailure", "allow", stored);
  else if (!before.refusal) next = put(next, "onFailure", "block", stored);
  return names === before.names ? next : put(next, "matcher", "*", stored);
}

type Values = Omit<Required<CreateHookBody>, "secret">;

/** What is stored of a form. */
function valuesOf(form: HookForm): Values {
  const { name, event, matcher, kind, onFailure, enabled } = form;
  return {
    ...{ event, matcher: matcher.trim(), kind, onFailure, enabled },
    name: name.trim(),
    url: kind === "http" ? form.url.trim() : "",
    argv: kind === "command" ? argumentsOf(form.argv) : [],
    timeoutMs: Number(form.timeoutMs),
    orderIndex: Number(form.orderIndex),
  };
}

function argumentsOf(text: string): string[] {
  return text.replace(/\n+$/, "").split("\n");
}

export function bodyOf(form: HookForm): CreateHookBody {
  return { ...valuesOf(form), ...(form.kind === "http" && form.secret ? { secret: form.secret } : {}) };
}

/** What is sent: only what changed, and the revision that it was compared with. */
export function patchOf(draft: Draft, hook: HookView): PatchHookBody {
  const stored = formOf(hook);
  const form = shown(stored, draft);
  const before = valuesOf(stored);
  const after = valuesOf(form);
  // The server chooses what a failure means when the event changes, unless it is told.
  const isOther = (field: keyof Values) =>
    JSON.stringify(after[field]) !== JSON.stringify(before[field]) || (field === "onFailure" && after.event !== before.event);
  const values = Object.entries(after).filter(([field]) => isOther(field as keyof Values));
  const removed = form.secret === null || (form.kind === "command" && hook.hasSecret);
  const secret = removed ? { secret: null } : form.secret ? { secret: form.secret } : {};
  return { revision: hook.revision, ...Object.fromEntries(values), ...secret };
}

function number(text: string, low: number, high: number): string | null {
  const range = `from ${low.toLocaleString()} to ${high.toLocaleString()}`;
  if (!/^\d+$/.test(text.trim())) return `A whole number ${range}.`;
  const value = Number(text);
  return value < low || value > high ? `${value.toLocaleString()} is too ${value < low ? "low" : "high"}. It goes ${range}.` : null;
}

function text(value: string, most: number): string | null {
  const length = [...value].length;
  if (value.trim() === "") return "This cannot be empty.";
  return length > most ? `${plural(length, "character")}; at most ${most.toLocaleString()} fit.` : null;
}

/** What cannot be saved, in words; the server has the last word. */
export function errors(form: HookForm): Partial<Record<Field, string>> {
  const secret = [...(form.secret ?? "")].length;
  const lines = argumentsOf(form.argv);
  const url = text(form.url, 2_000) ?? (/^https?:\/\/[^\s@#]+$/i.test(form.url.trim()) ? null : "An address that begins with https:// or http://, without a name or password.");
  const argv = text(lines[0] ?? "", 1_000) ?? (lines.length > 32 ? `${lines.length} lines; at most 32 fit.` : null);
  const found: Record<string, string | null> = {
    name: text(form.name, 120),
    matcher: text(form.matcher, 200),
    url: form.kind === "http" ? url : null,
    argv: form.kind === "command" ? argv : null,
    secret: form.kind === "http" && secret > 0 && (secret < 16 || secret > 256) ? `${plural(secret, "character")}; between 16 and 256 are needed.` : null,
    timeoutMs: number(form.timeoutMs, 100, 30_000),
    orderIndex: number(form.orderIndex, 0, 10_000),
  };
  return Object.fromEntries(Object.entries(found).filter(([, words]) => words !== null)) as Partial<Record<Field, string>>;
}
