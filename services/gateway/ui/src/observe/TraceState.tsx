import type { SpanView } from "../contracts";
import { type State, StateGlyph } from "../ui/StateGlyph";

type Status = SpanView["status"];

const SHAPES: Record<Status, State> = { running: "running", ok: "completed", error: "failed" };
const WORDS: Record<Status, string> = { running: "Running", ok: "Done", error: "Failed" };

export function traceState(status: Status): string {
  return WORDS[status];
}

/** The shape of a state; its word stands beside it. */
export function TraceState({ status }: { status: Status }) {
  return <StateGlyph state={SHAPES[status]} />;
}
