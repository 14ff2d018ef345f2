import { store, stored } from "../ui/stored";

const LAST = "popagent.last-chat";

/** The chat that was opened last on this device. */
export const lastChat = (): string | null => stored(LAST) || null;

/** Open this chat at the next visit; null: begin a new one. */
export const setLastChat = (id: string | null): void => store(LAST, id ?? "");
