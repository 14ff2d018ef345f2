import { createContext } from "react";

/** Whether the branch may be changed now: what only this decides is drawn again when a turn begins, not every message. */
export const MayChange = createContext(true);
