import type { CreateTaskBody } from "../contracts";
import { type DraftOf, drafting } from "../editing/draft";
import { plural } from "../ui/words";

/** A task as it is typed: numbers are text; an empty choice is the default of the moment. */
export interface TaskForm {
  prompt: string;
  workspaceId: string;
  agentId: string;
  model: string;
  priority: string;
  maxAttempts: string;
}

export const FIELDS = ["prompt", "workspaceId", "agentId", "model", "priority", "maxAttempts"] as const;
export type Field = (typeof FIELDS)[number];
export type Draft = DraftOf<TaskForm, Field>;
export const { shown, put, putAll } = drafting<TaskForm, Field>(FIELDS);

export const NEW = "new";
const PROMPT_CHARACTERS = 100_000;
export const MOST_ATTEMPTS = 10;
export const BLANK: TaskForm = { prompt: "", workspaceId: "", agentId: "", model: "", priority: "0", maxAttempts: "3" };

export function bodyOf(form: TaskForm): CreateTaskBody {
  return {
    prompt: form.prompt,
    workspaceId: form.workspaceId || null,
    agentId: form.agentId || null,
    model: form.model || null,
    priority: Number(form.priority),
    maxAttempts: Number(form.maxAttempts),
  };
}

/** Why a text is no whole number within these bounds; null when it is. */
export function outOf(text: string, low: number, high: number): string | null {
  const value = Number(text.trim());
  const isWhole = /^-?\d{1,6}$/.test(text.trim());
  return isWhole && value >= low && value <= high ? null : `A whole number from ${low} to ${high.toLocaleString()}.`;
}

/** Why nothing can be done with what is to be done; null when it can. */
export function promptTrouble(prompt: string): string | null {
  const length = [...prompt].length;
  if (!prompt.trim()) return "Say what is to be done.";
  return length > PROMPT_CHARACTERS ? `${plural(length, "character")}; at most ${PROMPT_CHARACTERS.toLocaleString()} fit.` : null;
}

/** What cannot be given, in words; the server has the last word. */
export function errors(form: TaskForm): Partial<Record<Field, string>> {
  const found = {
    prompt: promptTrouble(form.prompt),
    priority: outOf(form.priority, -10, 10),
    maxAttempts: outOf(form.maxAttempts, 1, MOST_ATTEMPTS),
  };
  return Object.fromEntries(Object.entries(found).filter(([, words]) => words !== null)) as Partial<Record<Field, string>>;
}
