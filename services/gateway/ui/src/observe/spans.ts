import type { SpanView, TraceSummary } from "../contracts";
import type { State } from "../ui/StateGlyph";

/** What kind of work a span is: a word first, a colour second. */
export type Kind = "agent" | "model" | "tool" | "wire" | "store" | "work";

const AGENT_NAMES = /^(agent|chat\.turn)\b/;
const STORE_NAMES = /^(db|sql|store|query)[. ]/;
const WIRES = new Set(["server", "client", "producer", "consumer"]);

export function kindOf(span: Pick<SpanView, "name" | "kind" | "attributes">): Kind {
  const { name, attributes } = span;
  const operation = attributes["gen_ai.operation.name"];
  if (operation === "execute_tool" || name.startsWith("execute_tool ")) return "tool";
  if (operation === "invoke_agent" || AGENT_NAMES.test(name)) return "agent";
  if (typeof operation === "string" && operation) return "model";
  if ("db.system" in attributes || "db.system.name" in attributes || STORE_NAMES.test(name)) return "store";
  return WIRES.has(span.kind) ? "wire" : "work";
}

const STATES: Record<SpanView["status"], State> = { running: "running", ok: "completed", error: "failed" };
const TURN_ENDS: readonly unknown[] = ["completed", "stopped", "failed", "interrupted"] satisfies State[];

/** How the turn of a trace ended, as soon as that is known; of a plain request, how that did. */
export function stateOfTrace(trace: Pick<TraceSummary, "status" | "turnState">): State {
  return trace.turnState ?? STATES[trace.status];
}

/** A turn says itself how it ended; what was stopped with it did not fail. */
export function stateOfSpan({ status, attributes }: Pick<SpanView, "status" | "attributes">): State {
  const told = attributes["popagent.turn.state"];
  if (TURN_ENDS.includes(told)) return told as State;
  const reasons = attributes["gen_ai.response.finish_reasons"];
  const isStopped =
    attributes["error.type"] === "stopped" ||
    attributes["cancelled"] === true ||
    (Array.isArray(reasons) && reasons.includes("stopped"));
  return status === "ok" && isStopped ? "stopped" : STATES[status];
}

function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

/** What a person calls the span; its recorded name stands among its facts. */
export function titleOf(span: SpanView): string {
  const { name, attributes } = span;
  switch (kindOf(span)) {
    case "tool":
      return text(attributes["gen_ai.tool.name"]) || name.replace(/^execute_tool /, "");
    case "model":
      return text(attributes["gen_ai.response.model"]) || text(attributes["gen_ai.request.model"]) || name;
    case "agent": {
      if (name === "agent.step") {
        const step = text(attributes["popagent.step"]);
        return attributes["popagent.step.final"] === true ? `step ${step}, the last` : `step ${step}`.trim();
      }
      if (name === "agent.run") return text(attributes["gen_ai.agent.name"]) || name;
      const attempt = Number(attributes["popagent.attempt"] ?? 1);
      return name === "chat.turn" ? (attempt > 1 ? `turn, attempt ${attempt}` : "turn") : name;
    }
    default:
      return name;
  }
}

/** What makes two siblings equal when a long trace is folded: a step is a step whatever its number. */
export function sameness(span: SpanView): string {
  const title = span.name === "agent.step" ? "step" : titleOf(span);
  return [kindOf(span), span.service, title, stateOfSpan(span)].join("\n");
}

export interface Fact {
  label: string;
  value: string;
}

const LABELS: Record<string, string> = {
  "gen_ai.request.model": "Model",
  "gen_ai.response.model": "Answered by",
  "gen_ai.agent.name": "Agent",
  "gen_ai.tool.name": "Tool",
  "gen_ai.tool.call.id": "Call",
  "gen_ai.usage.input_tokens": "Tokens in",
  "gen_ai.usage.output_tokens": "Tokens out",
  "gen_ai.usage.cache_read.input_tokens": "Tokens from cache",
  "gen_ai.usage.reasoning.output_tokens": "Tokens of reasoning",
  "gen_ai.response.finish_reasons": "Ended",
  "gen_ai.response.time_to_first_chunk_ms": "First token",
  "popagent.model.queue_ms": "Waited for a slot",
  "popagent.model.retries": "Retries",
  "popagent.steps": "Steps",
  "popagent.max_steps": "Most steps",
  "popagent.tool.access": "Access",
  "popagent.tool.output.characters": "Characters of result",
  "popagent.workspace.id": "Workspace",
  "popagent.route.reason": "Why this model",
  "server.address": "Server",
  "http.response.status_code": "Status",
  "error.type": "Error",
  "error.message": "Message",
};
/** Said by the span's own head, or the same as another fact. */
const SILENT = new Set(["popagent.turn.state", "gen_ai.operation.name", "gen_ai.tool.type", "gen_ai.usage.estimated", "popagent.step.final"]);

function worth(name: string, value: unknown): boolean {
  if (name === "gen_ai.usage.cache_read.input_tokens" || name === "gen_ai.usage.reasoning.output_tokens") return value !== 0;
  return value !== null && value !== "" && !SILENT.has(name);
}

function written(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((each) => written(name, each)).join(", ");
  if (value !== null && typeof value === "object") return JSON.stringify(value);
  if (name.endsWith("_ms")) return `${String(value)} ms`;
  return String(value);
}

/** Attributes with a name that a person knows first, the others under the name they were recorded with. */
export function factsOf(span: SpanView): { known: Fact[]; other: Fact[] } {
  const known: Fact[] = [];
  for (const [name, label] of Object.entries(LABELS)) {
    const value = span.attributes[name];
    if (value === undefined || !worth(name, value)) continue;
    if (name === "gen_ai.response.model" && value === span.attributes["gen_ai.request.model"]) continue;
    known.push({ label, value: written(name, value) });
  }
  const other = Object.entries(span.attributes)
    .filter(([name, value]) => !(name in LABELS) && worth(name, value))
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, value]) => ({ label: name, value: written(name, value) }));
  return { known, other };
}
