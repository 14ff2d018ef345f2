import type { State } from "../ui/StateGlyph";

const WORDS: Record<State, string> = {
  running: "Running",
  completed: "Done",
  stopped: "Stopped",
  failed: "Failed",
  interrupted: "Interrupted",
};
const INKS: Partial<Record<State, string>> = { running: "is-live", failed: "is-fail", interrupted: "is-wait" };

export function stateWord(state: State): string {
  return WORDS[state];
}

/** The class of a word that says a state. */
export function stateInk(state: State): string {
  return INKS[state] ?? "";
}
