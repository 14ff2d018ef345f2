import type { Message } from "./messages";

// A frame looks at every group, and draws the whole of one that comes near.
const MOST = 10;

/**
 * Cut what is drawn into groups. A group begins where one began before, so that nothing moves to another one when
 * messages come in front or behind; `begins` remembers that, by the messages' ids.
 */
export function grouped(messages: Message[], begins: Set<string>): Message[][] {
  const groups: Message[][] = [];
  for (const message of messages) {
    const last = groups.at(-1);
    if (last && last.length < MOST && !begins.has(message.id)) last.push(message);
    else {
      groups.push([message]);
      begins.add(message.id);
    }
  }
  return groups;
}
