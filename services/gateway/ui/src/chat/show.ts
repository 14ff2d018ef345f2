import { say } from "../ui/toasts";
import type { ChatSession } from "./session";

const MARKED_MS = 2_000;

/** Bring a message of the chat into view and mark it for a moment; `release` lets go of the end of the text. */
export async function show(session: ChatSession, messageId: string, release: () => void): Promise<void> {
  const found = await session.reveal(messageId);
  if (found === "busy") say("It is on another page of this chat; it can be opened when the turn has ended.");
  else if (found === "missing") say("That message is not in this chat any more.");
  else mark(messageId, release);
}

/** Bring a loaded message into view and mark it for a moment. */
export function mark(messageId: string, release: () => void): void {
  const now = () => {
    const element = document.getElementById(`m-${messageId}`);
    if (!element) return;
    release();
    element.scrollIntoView({ block: "center" });
    element.classList.add("found");
    setTimeout(() => element.classList.remove("found"), MARKED_MS);
  };
  // Painted first: what was just loaded has no place yet.
  requestAnimationFrame(() => requestAnimationFrame(now));
}
