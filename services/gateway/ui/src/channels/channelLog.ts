import { ApiError, api, query, sentence } from "../api/client";
import { ResumedStream, whileInView } from "../api/resumed";
import type { ServerEvent } from "../api/sse";
import { rendererIfSoon } from "../chat/loadMarkdown";
import type { ChannelHistory, ChannelMessage } from "../contracts";
import { NOTHING, type Stretch, withMessage, withNewer, withNewest, withOlder } from "./stretch";

/** How much is loaded at a time, and at most at once. */
const PAGE = 50;
const MOST = 200;
// Of these few behind one that is looked for the reader sees how it went on.
const BEHIND = 20;

/** Told of a message, and whether it was never heard of before. */
type Hearer = (message: ChannelMessage, isNew: boolean) => void;

export interface LogState extends Stretch {
  phase: "loading" | "ready" | "missing" | "failed";
  /** Why it could not be loaded. */
  failure: string | null;
}

/** What was written into a channel, or into one thread of it: page by page, and live while somebody follows. */
export class ChannelLog {
  state: LogState = { ...NOTHING, phase: "loading", failure: null };
  private readonly watchers = new Set<() => void>();
  private readonly hearers = new Set<Hearer>();
  private newest = 0;
  private stream: ResumedStream | null = null;
  private stop: (() => void) | null = null;
  private followers = 0;

  constructor(
    readonly channelId: string,
    readonly threadId: string | null = null,
  ) {}

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  snapshot = (): LogState => this.state;

  /** Be told of each message as it is heard. */
  hear(hearer: Hearer): () => void {
    this.hearers.add(hearer);
    return () => this.hearers.delete(hearer);
  }

  /** Load the newest page, with at least so many messages, and follow from there until nobody does any more. */
  follow(atLeast = 0): () => void {
    this.followers += 1;
    if (this.followers === 1) {
      if (this.stream) this.listen(this.stream);
      else void this.open(atLeast);
    }
    return () => {
      this.followers -= 1;
      if (this.followers > 0) return;
      this.stop?.();
      this.stop = null;
    };
  }

  /** Load the newest page; what is shown is no longer true when its place was `isLost`. */
  async open(atLeast = 0, isLost = false): Promise<void> {
    if (this.state.phase !== "ready") this.set({ phase: "loading", failure: null });
    const meanwhile: ChannelMessage[] = [];
    const off = this.hear((message) => void meanwhile.push(message));
    try {
      const page = await this.ask({ limit: Math.min(MOST, Math.max(PAGE, atLeast)) });
      await rendererIfSoon();
      this.heard(page.items.at(-1)?.seq ?? 0);
      const isMissing = this.threadId !== null && page.items.length === 0;
      const loaded = withNewest(isLost ? NOTHING : this.state, page);
      this.set({ ...meanwhile.reduce(withMessage, loaded), phase: isMissing ? "missing" : "ready" });
      if (!this.stream && !isMissing) {
        this.stream = new Stream(this, page.revision);
        if (this.followers > 0) this.listen(this.stream);
      }
    } catch (error) {
      const isMissing = error instanceof ApiError && error.status === 404;
      // What is shown is true all the same.
      if (this.state.phase === "ready" && !isLost) throw error;
      this.set({ phase: isMissing ? "missing" : "failed", failure: sentence(error) });
    } finally {
      off();
    }
  }

  loadOlder = async (): Promise<void> => {
    const { previousSeq } = this.state;
    if (previousSeq === null) return;
    const page = await this.ask({ limit: PAGE, beforeSeq: previousSeq });
    if (this.state.previousSeq === previousSeq) this.set(withOlder(this.state, page));
  };

  async loadNewer(): Promise<void> {
    const last = this.state.items.at(-1);
    if (!last) return;
    const page = await this.ask({ limit: PAGE, beforeSeq: last.seq + PAGE + 1 });
    if (this.state.items.at(-1)?.id === last.id) this.set(withNewer(this.state, page, this.newest));
  }

  /** Load the message at this place with what stands around it, unless it is loaded; false when there is none. */
  async reveal(seq: number): Promise<boolean> {
    const has = () => this.state.items.some((each) => each.seq === seq);
    if (has()) return true;
    const page = await this.ask({ limit: PAGE, beforeSeq: seq + BEHIND + 1 });
    if (!page.items.some((each) => each.seq === seq)) return false;
    const isEnd = (page.items.at(-1)?.seq ?? 0) >= this.newest;
    this.set({ items: page.items, previousSeq: page.previousSeq, hasNewer: !isEnd });
    return true;
  }

  /** Go back to the newest page, where another one is shown. */
  async toNewest(): Promise<void> {
    if (this.state.hasNewer) await this.open();
  }

  /** Take a message as the server has just told it. */
  take(message: ChannelMessage): void {
    if (this.threadId !== null && message.id !== this.threadId && message.threadId !== this.threadId) return;
    const isNew = message.seq > this.newest;
    this.heard(message.seq);
    const after = this.state.phase === "ready" ? withMessage(this.state, message) : this.state;
    if (after !== this.state) this.set(after);
    for (const hearer of this.hearers) hearer(message, isNew);
  }

  private listen(stream: ResumedStream): void {
    this.stop = whileInView(() => stream.start());
  }

  private heard(seq: number): void {
    this.newest = Math.max(this.newest, seq);
  }

  private ask(range: { limit: number; beforeSeq?: number }): Promise<ChannelHistory> {
    const path = `/api/channels/${encodeURIComponent(this.channelId)}/messages`;
    return api.get<ChannelHistory>(`${path}${query({ ...range, threadId: this.threadId })}`);
  }

  private set(change: Partial<LogState>): void {
    this.state = { ...this.state, ...change };
    for (const watcher of this.watchers) watcher();
  }
}

/** Goes on where the history ended. */
class Stream extends ResumedStream {
  constructor(
    private readonly log: ChannelLog,
    revision: number,
  ) {
    super(`/api/channels/${encodeURIComponent(log.channelId)}/events`, String(revision));
  }

  protected override take({ event, data }: ServerEvent): void {
    if (event === "message") this.log.take(JSON.parse(data) as ChannelMessage);
    else if (event === "resync") void this.log.open(0, true);
  }
}

// The places that were looked at last stay as they were, and go on from there.
const KEPT = 6;
const kept = new Map<string, ChannelLog>();

/** The log of a channel, or of a thread of it. */
export function logOf(channelId: string, threadId: string | null = null): ChannelLog {
  const name = JSON.stringify([channelId, threadId]);
  const log = kept.get(name) ?? new ChannelLog(channelId, threadId);
  kept.delete(name);
  kept.set(name, log);
  for (const old of [...kept.keys()].slice(0, -KEPT)) kept.delete(old);
  return log;
}

/** Show a message as the server has just answered it, wherever its channel is open. */
export function noteMessage(message: ChannelMessage): void {
  for (const log of kept.values()) if (log.channelId === message.channelId) log.take(message);
}
