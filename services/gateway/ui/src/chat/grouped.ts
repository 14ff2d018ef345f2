import type { Message } from "./messages";

// A frame looks at every group, and lays out the whole of one that comes near.
const MOST = 6;

/**
 * Cut what is drawn into groups. A group begins where one began before, so that nothing moves to another one when
 * messages come in front or behind; `begins` remembers that, by the messages' ids.
 */
export function grouped(messages: Message[], begins: Set<string>): Message[][] {
  const groups: Message[][] = [];
  for (let from = 0; from < messages.length; ) {
    let to = from + 1;
    while (to < messages.length && !begins.has(messages[to]?.id ?? "")) to++;
    // What came in front is cut evenly; what is known stays as it is, and what came behind fills it up.
    const isKnown = begins.has(messages[from]?.id ?? "");
    const size = isKnown ? MOST : Math.ceil((to - from) / Math.ceil((to - from) / MOST));
    for (; from < to; from += size) groups.push(messages.slice(from, Math.min(to, from + size)));
    from = to;
  }
  for (const [first] of groups) if (first) begins.add(first.id);
  return groups;
}
