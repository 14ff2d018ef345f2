import { ORCHESTRATOR } from "../agents/queries";
import type { ActivityEntry, AgentActivity } from "../contracts";
import type { State } from "../ui/StateGlyph";
import { visible } from "../ui/visible";
import { count, duration, plural } from "../ui/words";
import { type Ending, type Message, type Part, type ToolCall, isRefused, toolCall } from "./messages";

const PREFIX = "agent-";
/** The tool with which agents write to each other. */
const LETTERS = "agentCommunication";
const ACTIVITY = "data-agentActivity";
/** Where a hook kept the work from being handed on. */
export const REFUSED = "Refused";

/** A call that gives work to a specialist. */
export interface Given {
  call: ToolCall;
  /** Which step of the orchestrator asked for it: those of one step work at once. */
  step: number;
  /** What the specialist did, as it is stored with the message; none while it is only told. */
  stored: AgentActivity | null;
  /** The agent whose letter woke it; none where the orchestrator gave it work. */
  askedBy?: string;
}

/** What stands on the spine: a part by itself, or specialists that were given work one after the other or at once. */
export type Piece = { index: number } & ({ part: Part } | { given: Given[] });

export function isDelegation(call: ToolCall): boolean {
  return call.name.startsWith(PREFIX);
}

export function isLetter(call: ToolCall): boolean {
  return call.name === LETTERS;
}

/** What agents did, by the call that it was for, as it is stored with the message. */
export function storedOf(message: Message): Map<string, AgentActivity> {
  const stored = new Map<string, AgentActivity>();
  for (const part of message.parts) {
    if (part.type === ACTIVITY) stored.set(part.id ?? "", part.data as AgentActivity);
  }
  return stored;
}

/** Whether what is named `id` was woken by a letter of one of these calls, or of somebody who worked for one of them. */
export function isWokenUnder(id: string, activity: AgentActivity, callIds: string[]): boolean {
  return activity.askedBy !== undefined && callIds.some((callId) => id === callId || id.startsWith(`${callId}/`));
}

const STATES = { running: "input-available", completed: "output-available", failed: "output-error", stopped: "output-error" };

/** An agent that a letter woke, as if it had been given work: its last words are what it answered. */
export function wokenOf(id: string, activity: AgentActivity, stored: AgentActivity | null): Given {
  const state = activity.state ?? "running";
  const last = entriesOf(activity).findLast((entry) => entry.kind === "text");
  const call = {
    id,
    name: `${PREFIX}${activity.agentId ?? ""}`,
    state: STATES[state],
    input: { prompt: activity.task ?? "" },
    output: state === "completed" ? (last?.text ?? "").trim() : undefined,
    error: state === "failed" ? "It could not answer." : null,
    durationMs: activity.durationMs ?? null,
  };
  return { call, step: 0, stored, askedBy: activity.askedBy ?? "" };
}

/**
 * The shown parts of an answer in order. `index` does not count what is only stored, so that a part keeps its place
 * when the stored message takes the place of the streamed one.
 */
export function piecesOf(message: Message, isShown: (part: Part) => boolean): Piece[] {
  const stored = storedOf(message);
  const pieces: Piece[] = [];
  let step = 0;
  let index = -1;
  for (const part of message.parts) {
    if (part.type.startsWith("data-")) continue;
    index++;
    if (part.type === "step-start") step++;
    if (!isShown(part)) continue;
    const call = toolCall(part);
    if (!call || !isDelegation(call)) {
      pieces.push({ index, part });
      continue;
    }
    const given = { call, step, stored: stored.get(call.id) ?? null };
    const last = pieces.at(-1);
    if (last && "given" in last) last.given.push(given);
    else pieces.push({ index, given: [given] });
  }
  return pieces;
}

/** Where a specialist stands, and the word for it. */
export interface Standing {
  state: State;
  word: string;
}

/**
 * The call's end is the last word; before that the specialist's own, unless the answer ended without one. `ending` is
 * that of the answer, null while it is written.
 */
export function standing(call: ToolCall, activity: AgentActivity | null, ending: Ending | null): Standing {
  const said = activity?.state;
  // A call that the end of the answer cut short failed too, but took no time of its own.
  const neverBegan = ending === "stopped" && !said && call.durationMs === null;
  if (call.state === "output-available") return { state: "completed", word: "Done" };
  if (call.state === "output-denied") return { state: "stopped", word: "Denied" };
  if (isRefused(call)) return { state: "stopped", word: REFUSED };
  if (said === "stopped" || neverBegan) return { state: "stopped", word: "Stopped" };
  if (said === "failed" || call.state === "output-error") return { state: "failed", word: "Failed" };
  if (said === "completed") return { state: "completed", word: "Done" };
  if (ending !== null) return { state: "stopped", word: "Stopped" };
  return { state: "running", word: said ? "Works" : call.state === "input-streaming" ? "Gets its task" : "Starts" };
}

/** The agent's name; until it is told, its id with a capital. */
export function nameOf(call: ToolCall, activity: AgentActivity | null): string {
  return visible(activity?.agentName || nameById(call.name.slice(PREFIX.length)));
}

export function nameById(id: string): string {
  return id === ORCHESTRATOR ? "the orchestrator" : visible(id.charAt(0).toUpperCase() + id.slice(1).replaceAll("-", " "));
}

export function taskOf(call: ToolCall, activity: AgentActivity | null): string {
  const given = (call.input as { prompt?: unknown } | null | undefined)?.prompt;
  return visible(typeof given === "string" ? given : (activity?.task ?? ""));
}

/** What a specialist did, in order; pieces of a text are one. */
export function entriesOf(activity: AgentActivity | null): (ActivityEntry & { key: string })[] {
  const entries: (ActivityEntry & { key: string })[] = [];
  // Names that are whole numbers are in their order.
  for (const [key, entry] of Object.entries(activity?.entries ?? {})) {
    const last = entries.at(-1);
    if (entry.kind === "text" && last?.kind === "text" && last.step === entry.step) {
      entries[entries.length - 1] = { ...last, text: `${last.text ?? ""}${entry.text ?? ""}` };
    } else entries.push({ ...entry, key });
  }
  return entries;
}

/** The values of arguments that are JSON, or the beginning of it: what a person looks for, without the names. */
export function gistOf(input: string): string {
  const values = [...input.matchAll(/"(?:[^"\\]|\\.)*"\s*:\s*(?:"((?:[^"\\]|\\.)*)"?|(-?[\d.]+|true\b))/g)];
  return visible(
    values
      .map(([, text, plain]) => (text === undefined ? (plain ?? "") : unescaped(text)))
      .filter(Boolean)
      .join(" · "),
  );
}

function unescaped(text: string): string {
  try {
    return (JSON.parse(`"${text}"`) as string).replace(/\s+/g, " ").trim();
  } catch {
    return text; // cut within an escape
  }
}

/** The one line that says what it does now, or how it ended: a word, and more. `isTail`: the end of that matters. */
export interface Line {
  word: string;
  text: string;
  isTail: boolean;
}

export function lineOf({ state, word }: Standing, call: ToolCall, activity: AgentActivity | null): Line {
  const line = (text: string, now = word, isTail = false): Line => ({ word: now, text, isTail });
  if (state === "completed") return line(firstLine(typeof call.output === "string" ? call.output : ""));
  if (state === "failed" || word === REFUSED) return line(firstLine(call.error ?? ""));
  const last = state === "running" ? entriesOf(activity).at(-1) : undefined;
  if (!last) return line(firstLine(taskOf(call, activity)));
  if (last.kind === "text") return line(lastLine(last.text ?? ""), "Writes", true);
  const used = `${visible(last.tool ?? "")} ${gistOf(last.input ?? "")}`.trim();
  return last.state === "running" ? line(used, "Uses") : line(`after ${used}`, "Thinks");
}

function firstLine(text: string): string {
  return visible(text.trim().split("\n")[0] ?? "").replace(/^#+ |[*`]/g, "");
}

// More than a line has room for.
const TAIL = 240;

function lastLine(text: string): string {
  return visible(text.trimEnd().split("\n").at(-1) ?? "").slice(-TAIL);
}

export function tokensOf(activity: AgentActivity | null): number {
  return (activity?.usage?.inputTokens ?? 0) + (activity?.usage?.outputTokens ?? 0);
}

/** Steps, tokens and time, as far as they are known, to the right of a name. */
export function factsOf(activity: AgentActivity | null, isRunning: boolean, now: number): string {
  if (!activity) return "";
  const { steps = 0, maxSteps, durationMs, startedAt } = activity;
  if (isRunning) {
    const seconds = startedAt ? Math.floor((now - Date.parse(startedAt)) / 1_000) : 0;
    return [maxSteps && `step ${Math.max(steps, 1)} of ${maxSteps}`, seconds > 0 && (seconds < 60 ? `${seconds} s` : duration(1_000 * seconds))].filter(Boolean).join(" · ");
  }
  return [plural(steps, "step"), durationMs !== undefined && duration(durationMs)].filter(Boolean).join(" · ");
}

/** When a specialist worked; `tookMs` null while it works, or where nobody knows. */
export interface Time {
  startedAt: number;
  tookMs: number | null;
  isRunning: boolean;
}

export function timeOf({ call }: Given, activity: AgentActivity | null, ending: Ending | null): Time | null {
  const startedAt = Date.parse(activity?.startedAt ?? "");
  if (Number.isNaN(startedAt)) return null;
  const tookMs = activity?.durationMs ?? call.durationMs;
  return { startedAt, tookMs, isRunning: tookMs === null && standing(call, activity, ending).state === "running" };
}

/** Where on the clock that all lanes share each worked, in percent. This device's clock may be another. */
export function spansOf(times: (Time | null)[], now: number): ({ from: number; length: number } | null)[] {
  const known = times.filter((time) => time !== null);
  const first = Math.min(...known.map((time) => time.startedAt));
  const present = Math.max(now, ...known.map((time) => time.startedAt + (time.tookMs ?? 0)));
  const endOf = (time: Time) => (time.isRunning ? present : time.startedAt + (time.tookMs ?? 0));
  const whole = Math.max(1, Math.max(...known.map(endOf)) - first);
  const percent = (ms: number) => Math.round((ms / whole) * 1_000) / 10;
  return times.map((time) => time && { from: percent(time.startedAt - first), length: percent(endOf(time) - time.startedAt) });
}

/** What a card holds, in words. */
export function headOf(given: Given[]): { title: string; manner: string } {
  if (given[0]?.askedBy !== undefined) return { title: plural(given.length, "agent"), manner: "woken by letters" };
  const steps = new Set(given.map((each) => each.step)).size;
  const manner = given.length === 1 ? "" : steps === 1 ? "at once" : steps === given.length ? "one after the other" : "";
  return { title: plural(given.length, "specialist"), manner };
}

/** What all of them took together, when all have ended. */
export function sumOf(given: Given[], activities: (AgentActivity | null)[]): string {
  const tokens = activities.reduce((sum, activity) => sum + tokensOf(activity), 0);
  const byStep = new Map<number, number>();
  given.forEach(({ call, step }, index) => {
    const took = activities[index]?.durationMs ?? call.durationMs ?? 0;
    byStep.set(step, Math.max(byStep.get(step) ?? 0, took));
  });
  const took = [...byStep.values()].reduce((sum, ms) => sum + ms, 0);
  return [tokens > 0 && `${count(tokens)} tokens`, took > 0 && duration(took)].filter(Boolean).join(" · ");
}
