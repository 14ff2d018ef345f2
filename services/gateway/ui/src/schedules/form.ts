import type { ScheduleChanges, ScheduleFields, ScheduleView } from "../contracts";
import { type DraftOf, drafting } from "../editing/draft";
import { MOST_ATTEMPTS, outOf, promptTrouble } from "../tasks/form";
import { plural } from "../ui/words";

/** A schedule as it is typed: numbers are text; an empty choice is the default of the moment. */
export interface ScheduleForm {
  name: string;
  prompt: string;
  cron: string;
  workspaceId: string;
  agentId: string;
  model: string;
  maxAttempts: string;
  catchUpMinutes: string;
  skipIfRunning: boolean;
  enabled: boolean;
}

export const FIELDS = ["name", "prompt", "cron", "workspaceId", "agentId", "model", "maxAttempts", "catchUpMinutes", "skipIfRunning", "enabled"] as const;
export type Field = (typeof FIELDS)[number];
export type Draft = DraftOf<ScheduleForm, Field>;
export const drafts = drafting<ScheduleForm, Field>(FIELDS);
export const { shown, put, putAll, changes, conflicts, afterSave } = drafts;

export const LABELS: Readonly<Record<Field, string>> = {
  name: "Name",
  prompt: "What is to be done",
  cron: "When",
  workspaceId: "Workspace",
  agentId: "Agent",
  model: "Model",
  maxAttempts: "Attempts",
  catchUpMinutes: "Made up for",
  skipIfRunning: "While one still runs",
  enabled: "In use",
};

export const NEW = "new";
const LONGEST_CATCH_UP = 10_080;
export const BLANK: ScheduleForm = {
  name: "",
  prompt: "",
  cron: "",
  workspaceId: "",
  agentId: "",
  model: "",
  maxAttempts: "3",
  catchUpMinutes: "10",
  skipIfRunning: true,
  enabled: true,
};

/** Rules to begin with, in the words in which one thinks of them. */
export const RULES: readonly { cron: string; words: string }[] = [
  { cron: "0 * * * *", words: "Every hour" },
  { cron: "0 7 * * *", words: "Every day at 7" },
  { cron: "30 8 * * MON-FRI", words: "Working days at 8:30" },
  { cron: "0 9 * * MON", words: "Mondays at 9" },
  { cron: "0 6 1 * *", words: "The 1st of a month" },
];

export function formOf(schedule: ScheduleView): ScheduleForm {
  const { name, prompt, cron, workspaceId, skipIfRunning, enabled } = schedule;
  return {
    ...{ name, prompt, cron, workspaceId, skipIfRunning, enabled },
    agentId: schedule.agentId ?? "",
    model: schedule.model ?? "",
    maxAttempts: String(schedule.maxAttempts),
    catchUpMinutes: String(schedule.catchUpMinutes),
  };
}

/** What is stored of a form. */
export function bodyOf(form: ScheduleForm): ScheduleFields {
  return {
    name: form.name.trim(),
    prompt: form.prompt,
    cron: form.cron.trim(),
    workspaceId: form.workspaceId || null,
    agentId: form.agentId || null,
    model: form.model || null,
    maxAttempts: Number(form.maxAttempts),
    catchUpMinutes: Number(form.catchUpMinutes),
    skipIfRunning: form.skipIfRunning,
    enabled: form.enabled,
  };
}

/** What is sent: only what changed, and the revision that it was compared with. A workspace never changes. */
export function patchOf(draft: Draft, schedule: ScheduleView): Partial<ScheduleChanges> {
  const stored = formOf(schedule);
  const body = bodyOf(shown(stored, draft));
  const values = changes(draft, stored).flatMap((field) => (field === "workspaceId" ? [] : [[field, body[field]]]));
  return { revision: schedule.revision, ...(Object.fromEntries(values) as Partial<ScheduleChanges>) };
}

/** What cannot be saved, in words; of the rule the server says what is wrong. */
export function errors(form: ScheduleForm): Partial<Record<Field, string>> {
  const name = [...form.name.trim()].length;
  const found: Record<string, string | null> = {
    name: name === 0 ? "This cannot be empty." : name > 120 ? `${plural(name, "character")}; at most 120 fit.` : null,
    prompt: promptTrouble(form.prompt),
    cron: form.cron.trim() ? null : "Say when it is done.",
    maxAttempts: outOf(form.maxAttempts, 1, MOST_ATTEMPTS),
    catchUpMinutes: outOf(form.catchUpMinutes, 0, LONGEST_CATCH_UP),
  };
  return Object.fromEntries(Object.entries(found).filter(([, words]) => words !== null)) as Partial<Record<Field, string>>;
}
