import { createContext } from "react";
import type { AgentActivity } from "../contracts";

type Fields = Record<string, unknown>;

// Names that would reach into the object itself.
const SKIPPED = new Set(["__proto__", "constructor", "prototype"]);

function isFields(value: unknown): value is Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** What was told before with `delta` over it: objects merge deeply, values replace. Neither is changed. */
export function merged(before: unknown, delta: unknown): unknown {
  if (!isFields(delta)) return delta;
  const result: Fields = isFields(before) ? { ...before } : {};
  for (const [name, value] of Object.entries(delta)) {
    if (!SKIPPED.has(name) && value !== undefined) result[name] = merged(result[name], value);
  }
  return result;
}

/**
 * What the specialists of the running answer do, by the call that gave them their work. It comes beside the message,
 * which has it only once it is stored; however much comes within a frame, watchers are told once.
 */
export class Activities {
  private messageId: string | null = null;
  private readonly known = new Map<string, AgentActivity>();
  private readonly watchers = new Set<() => void>();
  private frame: number | null = null;

  /** Take what changed. A stream that begins again tells all of it again, which changes nothing. */
  take(messageId: string, callId: string, delta: unknown): void {
    if (messageId !== this.messageId) {
      this.messageId = messageId;
      this.known.clear();
    }
    this.known.set(callId, merged(this.known.get(callId), delta) as AgentActivity);
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      for (const watcher of [...this.watchers]) watcher();
    });
  }

  /** The same object until something is told of it. */
  of(messageId: string, callId: string): AgentActivity | null {
    return messageId === this.messageId ? (this.known.get(callId) ?? null) : null;
  }

  /** Everything that is known of the message, in the order in which it began. */
  all(messageId: string): [string, AgentActivity][] {
    return messageId === this.messageId ? [...this.known] : [];
  }

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };
}

/** Those of the open chat. */
export const Told = createContext(new Activities());
