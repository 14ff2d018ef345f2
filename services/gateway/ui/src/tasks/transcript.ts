import type { ActivityCall, ActivityRecord, TranscriptPage } from "../contracts";

/** Something an agent said or did, or what the runner says of the attempt. */
export type Item =
  | { kind: "text"; key: string; text: string }
  | { kind: "call"; key: string; call: ActivityCall }
  | { kind: "status"; key: string; text: string; at: string };

/** What one agent did without another one in between; `agentId` is null for the runner's own sentences. */
export interface Stretch {
  key: string;
  agentId: string | null;
  at: string;
  items: Item[];
}

export interface AttemptWork {
  attempt: number;
  at: string;
  stretches: Stretch[];
  steps: number;
  calls: number;
}

/** The records of a task as far as they were read. */
export interface Transcript {
  records: ActivityRecord[];
  previousCursor: number | null;
  revision: number;
}

/** Records, and how far the transcript was when they were read. */
export type Written = Pick<TranscriptPage, "records" | "revision">;

/** What was written since, over what was read: a record that grew keeps its place. */
export function withNewer(known: Transcript, page: Written): Transcript {
  if (page.records.length === 0) return { ...known, revision: Math.max(known.revision, page.revision) };
  const records = new Map(known.records.map((record) => [record.seq, record]));
  for (const record of page.records) {
    const old = records.get(record.seq);
    if (!old || old.revision <= record.revision) records.set(record.seq, record);
  }
  return {
    records: [...records.values()].sort((a, b) => a.seq - b.seq),
    previousCursor: known.previousCursor,
    revision: Math.max(known.revision, page.revision),
  };
}

/** Whether what was told goes on where the known records end: else some between them are missing. */
export function goesOn(known: Transcript, after: number): boolean {
  return known.revision >= after;
}

export function withOlder(known: Transcript, page: TranscriptPage): Transcript {
  const first = known.records[0]?.seq ?? Number.POSITIVE_INFINITY;
  return { ...known, records: [...page.records.filter((record) => record.seq < first), ...known.records], previousCursor: page.previousCursor };
}

class Reading {
  readonly work: AttemptWork;
  private readonly calls = new Map<string, { kind: "call"; key: string; call: ActivityCall }>();
  private readonly texts = new Map<string, { kind: "text"; key: string; text: string }>();
  private readonly steps = new Set<string>();
  /** Who carries it out: the others are asked, perhaps several at once. */
  private lead: string | null = null;

  constructor(attempt: number, at: string) {
    this.work = { attempt, at, stretches: [], steps: 0, calls: 0 };
  }

  take(record: ActivityRecord): void {
    const { kind, agentId, text } = record;
    const step = `${agentId}/${record.step}`;
    if (kind === "step-start" || kind === "step") {
      this.steps.add(step);
      this.lead = agentId;
    }
    if (kind === "text" || (kind === "step" && !this.texts.has(step))) this.say(record, step, text);
    for (const call of record.calls) this.call(record, call);
    if (kind === "status") this.put(record, { kind: "status", key: `s${record.seq}`, text, at: record.at });
    this.work.steps = this.steps.size;
    this.work.calls = this.calls.size;
  }

  /** A text that was too long for a record goes on in the next. */
  private say(record: ActivityRecord, step: string, text: string): void {
    if (!text.trim()) return;
    const last = this.open(record.agentId)?.items.at(-1);
    const open = this.texts.get(step);
    if (open && open === last) {
      open.text += text;
      return;
    }
    const item = { kind: "text" as const, key: `t${record.seq}`, text };
    this.texts.set(step, item);
    this.put(record, item);
  }

  private call(record: ActivityRecord, call: ActivityCall): void {
    const known = this.calls.get(call.callId);
    if (known) {
      known.call = { ...call, tool: call.tool || known.call.tool, arguments: call.arguments ?? known.call.arguments };
      return;
    }
    const item = { kind: "call" as const, key: `c${call.callId}`, call };
    this.calls.set(call.callId, item);
    this.put(record, item);
  }

  /** The stretch that goes on: what several do at the same time is told of each by itself. */
  private open(agentId: string | null): Stretch | undefined {
    const { stretches } = this.work;
    const since = stretches.findLastIndex((each) => each.agentId === null || each.agentId === this.lead);
    const isAsked = agentId !== null && agentId !== this.lead;
    return isAsked ? stretches.slice(since + 1).find((each) => each.agentId === agentId) : stretches.slice(-1).find((each) => each.agentId === agentId);
  }

  private put({ agentId, seq, at }: ActivityRecord, item: Item): void {
    const open = this.open(agentId);
    if (open) open.items.push(item);
    else this.work.stretches.push({ key: `r${seq}`, agentId, at, items: [item] });
  }
}

/** The transcript by attempts, the first one first; a call that is told twice, and the text of a step, stand once. */
export function attemptsOf(records: readonly ActivityRecord[]): AttemptWork[] {
  const found: Reading[] = [];
  for (const record of records) {
    let reading = found.at(-1);
    if (reading?.work.attempt !== record.attempt) found.push((reading = new Reading(record.attempt, record.at)));
    reading.take(record);
  }
  return found.map(({ work }) => work);
}

/** Without the last text, where the output says the same again. */
export function withoutOutput(work: AttemptWork, output: string): AttemptWork {
  const last = work.stretches.at(-1);
  const item = last?.items.at(-1);
  if (!last || item?.kind !== "text" || !output.trim() || !output.trim().startsWith(item.text.trim().slice(0, 2_000))) return work;
  const items = last.items.slice(0, -1);
  const rest = work.stretches.slice(0, -1);
  return { ...work, stretches: items.length > 0 ? [...rest, { ...last, items }] : rest };
}

/** Without its last words, where what stands below says again why the attempt ended. */
export function withoutEnd(work: AttemptWork, error: string | null): AttemptWork {
  let stretches = work.stretches;
  if (stretches.at(-1)?.agentId === null) stretches = stretches.slice(0, -1);
  return error ? withoutOutput({ ...work, stretches }, error) : { ...work, stretches };
}

/** Without an agent's last words where the runner says them again. */
export function withoutEcho(work: AttemptWork): AttemptWork {
  const end = work.stretches.at(-1);
  const said = end?.agentId === null && end.items[0]?.kind === "status" ? end.items[0].text : null;
  const before = { ...work, stretches: work.stretches.slice(0, -1) };
  const last = before.stretches.at(-1)?.items.at(-1);
  if (!end || said === null || last?.kind !== "text" || !said.includes(last.text.trim())) return work;
  return { ...work, stretches: [...withoutOutput(before, last.text).stretches, end] };
}

/** The newest `most` items, and how many come before them. */
export function newest(work: AttemptWork, most: number): { stretches: Stretch[]; before: number } {
  const total = work.stretches.reduce((sum, { items }) => sum + items.length, 0);
  let before = Math.max(0, total - most);
  // One more is no more than the button that would show it.
  if (before <= 1) return { stretches: work.stretches, before: 0 };
  const hidden = before;
  const stretches = work.stretches.flatMap((stretch) => {
    const items = stretch.items.slice(before);
    before = Math.max(0, before - stretch.items.length);
    return items.length > 0 ? [{ ...stretch, items }] : [];
  });
  return { stretches, before: hidden };
}
