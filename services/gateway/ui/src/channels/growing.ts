import { type Transcript, attemptsOf } from "../tasks/transcript";

/** What somebody who works on a post does right now: what was said so far, or what it is said to do. */
export interface Doing {
  text: string;
  /** In words, where nothing is being said. */
  act: string;
}

/** The newest of what is told of a task, by `lead`, who carries it out; the others are asked by it. */
export function doingOf({ records }: Pick<Transcript, "records">, lead: string): Doing {
  const stretch = attemptsOf(records).at(-1)?.stretches.findLast(({ agentId }) => agentId !== null);
  const item = stretch?.items.at(-1);
  if (!stretch || !item || item.kind === "status") return { text: "", act: "" };
  if (stretch.agentId !== lead) return { text: "", act: `asks ${stretch.agentId}` };
  if (item.kind === "text") return { text: item.text, act: "" };
  return { text: "", act: item.call.status === "running" ? `uses ${item.call.tool}` : `has used ${item.call.tool}` };
}
