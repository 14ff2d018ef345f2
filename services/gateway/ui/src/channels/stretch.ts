import type { ChannelHistory, ChannelMessage } from "../contracts";

/** The loaded part of a channel, in the order in which it was written. */
export interface Stretch {
  items: readonly ChannelMessage[];
  /** Asks for what came before; null where it begins with the first message of all. */
  previousSeq: number | null;
  /** Its end is not the channel's: more was written behind it. */
  hasNewer: boolean;
}

export const NOTHING: Stretch = { items: [], previousSeq: null, hasNewer: false };

function merged(...lists: (readonly ChannelMessage[])[]): ChannelMessage[] {
  const known = new Map<string, ChannelMessage>();
  for (const message of lists.flat()) {
    const before = known.get(message.id);
    if (!before || before.revision < message.revision) known.set(message.id, message);
  }
  return [...known.values()].sort((a, b) => a.seq - b.seq);
}

/** With a message that is new or was changed; whatever is older than what is shown changes nothing. */
export function withMessage(stretch: Stretch, message: ChannelMessage): Stretch {
  const { items, previousSeq, hasNewer } = stretch;
  const known = items.find(({ id }) => id === message.id);
  if (known) return known.revision >= message.revision ? stretch : { ...stretch, items: items.map((each) => (each === known ? message : each)) };
  const first = items[0];
  const last = items.at(-1);
  // It comes with a page of its own.
  if (first && message.seq < first.seq && previousSeq !== null) return stretch;
  if (last && message.seq > last.seq && hasNewer) return stretch;
  return { ...stretch, items: merged(items, [message]) };
}

/** With the page before it above. */
export function withOlder(stretch: Stretch, page: ChannelHistory): Stretch {
  return { ...stretch, items: merged(page.items, stretch.items), previousSeq: page.previousSeq };
}

/** With what follows it below, out of a page that ends with `upTo` or earlier; `newest` is the last message of all. */
export function withNewer(stretch: Stretch, page: ChannelHistory, newest: number): Stretch {
  const items = merged(stretch.items, page.items);
  return { ...stretch, items, hasNewer: (items.at(-1)?.seq ?? 0) < newest };
}

/** The newest page, with what was loaded before it where it continues that. */
export function withNewest(stretch: Stretch, page: ChannelHistory): Stretch {
  const first = page.items[0];
  const last = stretch.items.at(-1);
  const continues = first !== undefined && last !== undefined && !stretch.hasNewer && first.seq <= last.seq + 1 && page.previousSeq !== null;
  return continues
    ? { items: merged(stretch.items, page.items), previousSeq: stretch.previousSeq, hasNewer: false }
    : { items: merged(page.items), previousSeq: page.previousSeq, hasNewer: false };
}
