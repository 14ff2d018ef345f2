import { ApiError, request, sentence } from "../api/client";
import { onKeyChange } from "../api/key";
import { UNSENT } from "../chat/drafts";
import { Pauses } from "../chat/pauses";
import type { ChannelMessage, PostBody } from "../contracts";
import { namesOf, store, stored } from "../ui/stored";

/** A post that popagent has not taken yet. Its id becomes the message's: sent twice, it is one message. */
export interface Unsent {
  id: string;
  post: PostBody;
  /** When it was written, in milliseconds. */
  at: number;
}

/** Where an unsent post stands: on its way, waiting for another attempt, or put aside until a person says what becomes of it. */
export interface Standing {
  is: "sending" | "waiting" | "aside";
  /** Why it is not taken; empty where nothing is known against it. */
  why: string;
}

const SENDING: Standing = { is: "sending", why: "" };
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** What was written longer ago than this is not sent by itself when the page is opened again: it may start work. */
const STALE_MS = 3_600_000;
const STALE = "It was written a while ago and did not arrive.";

/** Whether the same words may be taken the next time: popagent was not reached, is not ready, or does not know who asks. */
function passes(error: unknown): boolean {
  return !(error instanceof ApiError) || [0, 401, 429, 502, 503, 504].includes(error.status);
}

/** Posts into one channel that were not taken yet: kept on this device, sent in order, again and again until they are. */
export class Outbox {
  items: readonly Unsent[] = [];
  private readonly standings = new Map<string, Standing>();
  private readonly watchers = new Set<() => void>();
  private readonly pauses = new Pauses();
  private isBusy = false;

  constructor(
    private readonly channelId: string,
    private readonly onTaken: (message: ChannelMessage) => void,
    now = Date.now(),
  ) {
    const kept = namesOf(this.name("")).flatMap((name) => JSON.parse(stored(name)) as Unsent);
    this.items = kept.sort((a, b) => a.at - b.at);
    for (const { id, at } of this.items) if (now - at > STALE_MS) this.standings.set(id, { is: "aside", why: STALE });
    onKeyChange(() => this.pauses.end());
    void this.work();
  }

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  snapshot = (): readonly Unsent[] => this.items;

  standing(id: string): Standing {
    return this.standings.get(id) ?? SENDING;
  }

  send(post: PostBody): void {
    const unsent = { id: crypto.randomUUID(), post, at: Date.now() };
    store(this.name(unsent.id), JSON.stringify(unsent));
    this.set([...this.items, unsent]);
    void this.work();
  }

  /** Try it now, whatever was said of it. */
  again(id: string): void {
    this.standings.delete(id);
    this.set([...this.items]);
    this.pauses.end();
    void this.work();
  }

  /** It is no post any more. */
  drop(id: string): void {
    if (!this.items.some((each) => each.id === id)) return;
    store(this.name(id), "");
    this.standings.delete(id);
    this.set(this.items.filter((each) => each.id !== id));
  }

  private async work(): Promise<void> {
    if (this.isBusy) return;
    this.isBusy = true;
    let wait = FIRST_WAIT_MS;
    for (let next = this.next(); next; next = this.next()) {
      try {
        this.onTaken(await this.post(next));
        this.drop(next.id);
        wait = FIRST_WAIT_MS;
      } catch (error) {
        const isPassing = passes(error);
        this.stand(next.id, { is: isPassing ? "waiting" : "aside", why: sentence(error) });
        if (!isPassing) continue;
        const asked = error instanceof ApiError && error.retryAfterS !== null ? error.retryAfterS * 1_000 : 0;
        await this.pauses.wait(Math.max(asked, wait));
        wait = Math.min(wait * 2, LONGEST_WAIT_MS);
      }
    }
    this.isBusy = false;
  }

  private next(): Unsent | undefined {
    return this.items.find(({ id }) => this.standing(id).is !== "aside");
  }

  private async post({ id, post }: Unsent): Promise<ChannelMessage> {
    const path = `/api/channels/${encodeURIComponent(this.channelId)}/messages`;
    const answer = await request("POST", path, { body: post, headers: { "idempotency-key": id } });
    return (await answer.json()) as ChannelMessage;
  }

  private stand(id: string, standing: Standing): void {
    // It may have been heard of meanwhile, or taken back.
    if (!this.items.some((each) => each.id === id)) return;
    this.standings.set(id, standing);
    this.set([...this.items]);
  }

  private name(id: string): string {
    return `${UNSENT}${this.channelId}.${id}`;
  }

  private set(items: readonly Unsent[]): void {
    this.items = items;
    for (const watcher of this.watchers) watcher();
  }
}

const kept = new Map<string, Outbox>();

/** The outbox of a channel; it goes on when another screen is looked at. */
export function outboxOf(channelId: string, onTaken: (message: ChannelMessage) => void): Outbox {
  const outbox = kept.get(channelId) ?? new Outbox(channelId, onTaken);
  kept.set(channelId, outbox);
  return outbox;
}
