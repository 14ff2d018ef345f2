import type { ChannelMessage, ChannelRun } from "../contracts";
import { plainly } from "../tasks/words";

const DAY_MS = 86_400_000;
const EXCERPT = 80;
const near = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const far = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "long", year: "numeric" });

function dayOf(at: Date): number {
  return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
}

/** The day of a time on this browser's clock: Today, Yesterday, Saturday 2 May, 2 May 2025. */
export function day(iso: string, now = new Date()): string {
  const at = new Date(iso);
  const days = Math.round((dayOf(now) - dayOf(at)) / DAY_MS);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return (at.getFullYear() === now.getFullYear() ? near : far).format(at);
}

/** What stands above a message: the day, where it is the first of it; and that what follows is new. */
export interface Breaks {
  day: string | null;
  isFirstNew: boolean;
}

/** What was unread when it was opened: messages of others behind `after`, up to `upTo`. */
export interface Unread {
  after: number;
  upTo: number;
}

/** Where days begin, and where what was unread does; `isBeginning` where nothing was written before the first of them. */
export function breaksOf(items: readonly ChannelMessage[], unread: Unread | null, now = new Date()): Map<string, Breaks> {
  const found = new Map<string, Breaks>();
  let last: string | null = null;
  let isKnown = unread === null;
  for (const message of items) {
    const today = day(message.createdAt, now);
    const isNew: boolean = !isKnown && unread !== null && message.authorKind !== "user" && message.deletedAt === null && message.seq > unread.after && message.seq <= unread.upTo;
    if (today !== last || isNew) found.set(message.id, { day: today === last ? null : today, isFirstNew: isNew });
    isKnown ||= isNew;
    last = today;
  }
  return found;
}

/** A line of a message: its words without marks, or what became of it. */
export function excerptOf(message: Pick<ChannelMessage, "body" | "deletedAt">): string {
  if (message.deletedAt !== null) return "a deleted message";
  const words = plainly(message.body);
  return words.length > EXCERPT ? `${words.slice(0, EXCERPT - 1).trimEnd()}…` : words;
}

export function isAtWork(run: Pick<ChannelRun, "state">): boolean {
  return ["waiting", "queued", "running", "cancelling"].includes(run.state);
}

/** Whether there is a task to look at: none was made yet, or none at all. */
export function hasTask(run: ChannelRun): boolean {
  return run.state !== "waiting" && !(run.state === "failed" && run.note);
}

/** What a post has started, as one reads it; `by` is who does it. */
export function runWords(run: ChannelRun, by: string): string {
  switch (run.state) {
    case "waiting":
      return run.note ? `Waits: ${run.note}` : `Is being given to ${by}`;
    case "queued":
      return `${by} has it next, when a place is free`;
    case "running":
      return `${by} works on it`;
    case "cancelling":
      return `${by} was told to end`;
    case "completed":
      return `${by} answered`;
    case "cancelled":
      return "Cancelled";
    case "failed":
      return run.note ? `Nothing came of it: ${run.note}` : `${by} failed`;
    case "dead-letter":
      return `${by} failed, and nothing tries it again`;
  }
}
