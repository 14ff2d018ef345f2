/** What belongs to one chat and was not sent yet, kept on this device: the words, and the chosen model. */
const DRAFT = "popagent.draft.";
const MODEL = "popagent.model.";

/** Where the next words of a new chat are kept until it has an id of its own. */
export const NEW_CHAT = "new";

export const draft = (chat: string): string => read(DRAFT + chat);
export const keepDraft = (chat: string, text: string): void => write(DRAFT + chat, text);
export const chosenModel = (chat: string): string | null => read(MODEL + chat) || null;
export const keepModel = (chat: string, model: string | null): void => write(MODEL + chat, model ?? "");

/** Forget a chat that is gone. */
export function forgetChat(chat: string): void {
  keepDraft(chat, "");
  keepModel(chat, null);
}

function read(name: string): string {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return ""; // storage is forbidden here
  }
}

function write(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    // full or forbidden: what was written is still in the field
  }
}
