import type { Chat } from "@ai-sdk/react";
import { api, query } from "../api/client";
import type { SessionView } from "../contracts";
import { type Message, withNewest } from "./messages";

/** How many messages are loaded at a time. */
export const PAGE = 50;

/** The loaded messages of a chat, page by page, and whether there are more on either side. `changed` is called with that. */
export class Pages {
  private previous: string | null = null;
  private next: string | null = null;

  constructor(
    private readonly chat: Chat<Message>,
    private readonly changed: (more: { hasOlder: boolean; hasNewer: boolean }) => void,
  ) {}

  /** Ask for a page: the newest one, or one beside or around a message. */
  ask(where: { before?: string; after?: string; around?: string } = {}): Promise<SessionView> {
    return api.get<SessionView>(`/api/sessions/${this.chat.id}${query({ limit: PAGE, ...where })}`);
  }

  /** Show the newest page, and what was loaded before it where it fits. */
  showNewest(view: SessionView): void {
    const { messages, continues } = withNewest(this.chat.messages, messagesOf(view));
    this.chat.messages = messages;
    this.stand(continues ? this.previous : view.previousCursor, null);
  }

  /** Show a page from anywhere, and nothing else. */
  showOnly(view: SessionView): void {
    this.chat.messages = messagesOf(view);
    this.stand(view.previousCursor, view.nextCursor);
  }

  /** Put the page before the loaded messages above them; false when there is none, or others are loaded by then. */
  async older(): Promise<boolean> {
    const before = this.previous;
    if (!before) return false;
    const view = await this.ask({ before });
    if (this.previous !== before) return false;
    this.chat.messages = [...messagesOf(view), ...this.chat.messages];
    this.stand(view.previousCursor, this.next);
    return true;
  }

  /** Put the page after the loaded messages below them. */
  async newer(): Promise<void> {
    const after = this.next;
    if (!after) return;
    const view = await this.ask({ after });
    if (this.next !== after) return;
    this.chat.messages = [...this.chat.messages, ...messagesOf(view)];
    this.stand(this.previous, view.nextCursor);
  }

  /** What is loaded is the end of the chat now. */
  endHere(): void {
    this.stand(this.previous, null);
  }

  private stand(previous: string | null, next: string | null): void {
    this.previous = previous;
    this.next = next;
    this.changed({ hasOlder: previous !== null, hasNewer: next !== null });
  }
}

function messagesOf(view: SessionView): Message[] {
  return view.messages as unknown as Message[];
}
