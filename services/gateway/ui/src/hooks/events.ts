import type { HookView } from "../contracts";

export type HookEvent = HookView["event"];

/** When a hook is called, and what that means. */
interface Moment {
  title: string;
  when: string;
  /** What a refusal does; null where a hook is only told. */
  refusal: string | null;
  /** What the matcher chooses by. */
  names: "tools" | "specialists" | null;
}

/** In the order in which they come in the life of a chat. */
export const EVENTS: Readonly<Record<HookEvent, Moment>> = {
  SessionStart: { title: "A chat begins", when: "At its first turn.", refusal: null, names: null },
  UserPromptSubmit: {
    title: "Something is said",
    when: "Before any model sees your message.",
    refusal: "The turn ends with the reason; your message is kept.",
    names: null,
  },
  PreToolUse: {
    title: "A tool is to be used",
    when: "Before each call of an agent, handing on work included.",
    refusal: "The call is not made; the model and you read the reason.",
    names: "tools",
  },
  PostToolUse: { title: "A tool was used", when: "After a call that went well.", refusal: null, names: "tools" },
  PostToolUseFailure: { title: "A tool failed", when: "After a call that went wrong.", refusal: null, names: "tools" },
  SubagentStart: {
    title: "Work is to be handed on",
    when: "Before a specialist begins.",
    refusal: "The work is not handed on; the orchestrator and you read the reason.",
    names: "specialists",
  },
  SubagentStop: { title: "Work was handed back", when: "When a specialist has ended.", refusal: null, names: "specialists" },
  TaskStart: { title: "A task begins", when: "At each attempt, once its start is stored.", refusal: null, names: null },
  TaskStop: { title: "A task has ended", when: "At each attempt, once its end is stored.", refusal: null, names: null },
  Stop: {
    title: "An answer is to end",
    when: "Before it is the last word.",
    refusal: "The model is sent back to its answer, three times at most.",
    names: null,
  },
  SessionEnd: { title: "A chat was deleted", when: "It is gone already.", refusal: null, names: null },
};

export const ALL_EVENTS = Object.keys(EVENTS) as HookEvent[];

export const ON_FAILURE: Readonly<Record<HookView["onFailure"], string>> = { block: "Refuse", allow: "Go on" };
export const KINDS: Readonly<Record<HookView["kind"], string>> = { http: "A URL", command: "A program" };

// Shapes that a browser may read for an age: a repeated group, or more repetitions than a name needs.
const SLOW = /\)\s*[*+?{]|(?:[*+?{].*){4}/;

/** Which of these names a matcher means; null where only the server can tell. */
export function meant(matcher: string, names: readonly string[]): string[] | null {
  if (matcher === "*") return [...names];
  if (SLOW.test(matcher)) return null;
  try {
    const whole = new RegExp(`^(?:${matcher})$`, "u");
    return names.filter((name) => whole.test(name));
  } catch {
    return null; // RE2 takes what browsers do not, and says itself what it does not take
  }
}
