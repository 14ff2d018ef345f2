/** What was written and not sent yet, kept on this device for each chat. */
const PREFIX = "popagent.draft.";

export function draft(chat: string): string {
  try {
    return localStorage.getItem(PREFIX + chat) ?? "";
  } catch {
    return ""; // storage is forbidden here
  }
}

export function keepDraft(chat: string, text: string): void {
  try {
    if (text) localStorage.setItem(PREFIX + chat, text);
    else localStorage.removeItem(PREFIX + chat);
  } catch {
    // full or forbidden: the words are still in the field
  }
}

/** Where the next words of a new chat are kept until it has an id of its own. */
export const NEW_CHAT = "new";
