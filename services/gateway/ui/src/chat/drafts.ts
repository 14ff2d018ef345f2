import { forget, store, stored } from "../ui/stored";

/** What belongs to one chat and was not sent yet, kept on this device: the words, and the chosen model. */
const DRAFT = "popagent.draft.";
const MODEL = "popagent.model.";

/** The chat that has no words yet, and no id of its own. */
export const NEW_CHAT = "new";

export const draft = (chat: string): string => stored(DRAFT + chat);
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
export const forgetDrafts = (): void => forget(DRAFT);

/** Forget a chat that is gone. */
export function forgetChat(chat: string): void {
  keepDraft(chat, "");
  keepModel(chat, null);
}
