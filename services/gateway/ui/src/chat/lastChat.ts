const LAST = "popagent.last-chat";

/** The chat that was opened last on this device. */
export function lastChat(): string | null {
  try {
    return localStorage.getItem(LAST);
  } catch {
    return null; // storage is forbidden here
  }
}

/** Open this chat at the next visit; null: begin a new one. */
export function setLastChat(id: string | null): void {
  try {
    if (id) localStorage.setItem(LAST, id);
    else localStorage.removeItem(LAST);
  } catch {
    // storage is forbidden here; the next visit begins with a new chat
  }
}
