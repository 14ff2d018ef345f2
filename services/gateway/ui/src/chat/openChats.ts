import { events } from "../api/events";
import { onKeyChange } from "../api/key";
import { ChatSession } from "./session";

// The chats that were opened last stay, with their streams, while the person looks at another.
const KEPT = 6;
const kept = new Map<string, ChatSession>();

/** The chat of this id; `isNew` when it was made here and nothing of it is stored yet. */
export function chatSession(id: string, isNew = false): ChatSession {
  const known = kept.get(id);
  const session = known ?? new ChatSession(id, isNew);
  kept.delete(id);
  kept.set(id, session);
  for (const [old, each] of kept) {
    if (kept.size <= KEPT) break;
    if (each.isBusy || each === session) continue;
    kept.delete(old);
  }
  return session;
}

events.hear((heard) => {
  for (const session of kept.values()) session.hear(heard);
});

// What was refused with the old key is asked for with the new one.
onKeyChange(() => {
  for (const session of kept.values()) session.hear({ kind: "resync" });
});
