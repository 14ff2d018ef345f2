import { forget, store, stored } from "../ui/stored";

/** What belongs to one chat and was not sent yet, kept on this device: the words, and the chosen model. */
const DRAFT = "popagent.draft.";
const MODEL = "popagent.model.";
const UNSURE = "popagent.unsure.";
/** Posts into channels that popagent has not taken yet. */
export const UNSENT = "popagent.unsent.";

/** The chat that has no words yet, and no id of its own. */
export const NEW_CHAT = "new";

/** Chats whose last words are on their way from this page; what another load of the page sent may be lost. */
const sending = new Set<string>();

/** What was written and not sent; words that may never have arrived stand before it, once. */
export function draft(chat: string): string {
  const lost = sending.has(chat) ? "" : stored(UNSURE + chat);
  if (lost) {
    keepDraft(chat, [lost, stored(DRAFT + chat)].filter((text) => text !== "").join("\n\n"));
    store(UNSURE + chat, "");
  }
  return stored(DRAFT + chat);
}

/** Keep words of which nobody knows whether they arrived, should the page be closed before that is known. */
export function keepUnsure(chat: string, text: string): void {
  sending.add(chat);
  store(UNSURE + chat, text);
}

/** It is known: they were taken, or given back. */
export function settle(chat: string): void {
  sending.delete(chat);
  store(UNSURE + chat, "");
}

export const keepDraft = (chat: string, text: string): void => store(DRAFT + chat, text);
export const chosenModel = (chat: string): string | null => stored(MODEL + chat) || null;
export const keepModel = (chat: string, model: string | null): void => store(MODEL + chat, model ?? "");

/** What was begun as a new chat belongs to the one that it has become. */
export function adoptNew(chat: string): void {
  keepDraft(chat, draft(NEW_CHAT));
  keepModel(chat, chosenModel(NEW_CHAT));
  forgetChat(NEW_CHAT);
}

/** Forget all that was written and not sent. */
export function forgetDrafts(): void {
  forget(DRAFT);
  forget(UNSURE);
  forget(UNSENT);
}

/** Forget a chat that is gone. */
export function forgetChat(chat: string): void {
  keepDraft(chat, "");
  keepModel(chat, null);
  settle(chat);
}
