import type { UIMessage } from "ai";
import type { MessageMetadata, TextMetadata, ToolMetadata } from "../contracts";

export type Message = UIMessage<MessageMetadata>;
export type Part = Message["parts"][number];
/** How an answer ended. */
export type Ending = NonNullable<MessageMetadata["state"]>;

/** A tool call, whichever of the two shapes the wire uses for it. */
export interface ToolCall {
  id: string;
  name: string;
  state: string;
  input: unknown;
  output: unknown;
  error: string | null;
  durationMs: number | null;
}

export function toolCall(part: Part): ToolCall | null {
  if (part.type !== "dynamic-tool" && !part.type.startsWith("tool-")) return null;
  const call = part as Record<string, unknown> & { toolCallId: string; state: string };
  const metadata = (call["toolMetadata"] ?? {}) as ToolMetadata;
  return {
    id: call.toolCallId,
    name: part.type === "dynamic-tool" ? String(call["toolName"]) : part.type.slice("tool-".length),
    state: call.state,
    // A stored call that failed has its arguments where version 6 of the client put them.
    input: call["input"] ?? call["rawInput"],
    output: call["output"],
    error: typeof call["errorText"] === "string" ? call["errorText"] : null,
    durationMs: metadata.durationMs ?? null,
  };
}

/** Whether a hook kept the call from being made; the error says which one, and why. */
export function isRefused(call: ToolCall): boolean {
  return call.state === "output-error" && call.durationMs === null && (call.error ?? "").startsWith("The hook “");
}

/** Whether a text part only repeats `metadata.error.text`, which the stamp says. */
export function isFailureText(part: Part): boolean {
  if (part.type !== "text") return false;
  const own = part.providerMetadata?.["popagent"] as TextMetadata | undefined;
  return own?.failure === true;
}

/** What was written, without thoughts and tools. */
export function textOf(message: Message): string {
  return message.parts
    .filter((part) => part.type === "text" && !isFailureText(part))
    .map((part) => (part as { text: string }).text)
    .join("\n\n");
}

/**
 * Put the newest page of the stored branch over what is shown. Older messages that were loaded stay where the page
 * continues them; otherwise the page is all there is. `continues` tells which.
 */
export function withNewest(shown: Message[], page: Message[]): { messages: Message[]; continues: boolean } {
  const first = page[0];
  const at = first ? shown.findIndex((message) => message.id === first.id) : -1;
  return at > 0 ? { messages: [...shown.slice(0, at), ...page], continues: true } : { messages: page, continues: false };
}

// A line has about a hundred characters; what stands around a text is as high as two or three.
const PX_PER_CHARACTER = 1 / 4;
const PX_AROUND = 60;

/** About how high a message is: a guess that costs no layout. */
export function heightOf(message: Message): number {
  const characters = message.parts.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
  return PX_AROUND + characters * PX_PER_CHARACTER;
}

/** Where to begin so that the messages before `end` are about `px` high or higher. */
export function startOf(messages: Message[], end: number, px: number): number {
  let at = end;
  for (let height = 0; at > 0 && height < px; at--) {
    const message = messages[at - 1];
    if (message) height += heightOf(message);
  }
  return at;
}
