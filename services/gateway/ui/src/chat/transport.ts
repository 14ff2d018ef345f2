import { DefaultChatTransport } from "ai";
import { refusal, UNREACHABLE } from "../api/client";
import { keyHeaders } from "../api/key";
import type { ChatRequest } from "../contracts";
import type { Message } from "./messages";

// The gateway beats every 3 s; a socket that is silent for this long is dead, as after a machine's sleep.
const SILENCE_MS = 20_000;

/** What goes with the words: the person's choices, and the message that these words replace. */
export interface TurnChoice {
  model: string | null;
  workspaceId: string | null;
  edits: string | null;
}

/** Sends the last message only: the history is the server's. */
export function transport(): DefaultChatTransport<Message> {
  return new DefaultChatTransport<Message>({
    api: "/api/chat",
    fetch: watchedFetch as typeof fetch,
    headers: keyHeaders,
    prepareSendMessagesRequest: ({ id, messages, trigger, messageId, body }) => {
      const choice = body as Partial<TurnChoice> | undefined;
      const last = messages.at(-1);
      const request: ChatRequest = { id, trigger };
      if (trigger === "submit-message" && last) {
        request.message = { id: last.id, role: last.role, parts: last.parts as unknown[] };
        // What stands above it here: on another branch than the stored one the server refuses, instead of guessing.
        if (!choice?.edits) request.parentId = messages.at(-2)?.id ?? null;
      }
      const named = choice?.edits ?? messageId;
      if (named) request.messageId = named;
      if (choice?.model) request.model = choice.model;
      if (choice?.workspaceId) request.workspaceId = choice.workspaceId;
      return { body: request };
    },
  });
}

/** The wire is cut, whatever the browser calls it; the turn may go on. */
export class CutError extends TypeError {
  // The SDK tells a disconnect by this word.
  constructor(readonly answered: boolean) {
    super(`network: ${UNREACHABLE}`);
  }
}

async function watchedFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const head = new AbortController();
  const tooLong = setTimeout(() => head.abort(), SILENCE_MS);
  const signal = init?.signal ? AbortSignal.any([init.signal, head.signal]) : head.signal;
  let response: Response;
  try {
    response = await fetch(input, { ...init, signal });
  } catch (error) {
    if (init?.signal?.aborted) throw error;
    throw new CutError(false);
  } finally {
    clearTimeout(tooLong);
  }
  if (!response.ok) throw await refusal(response);
  if (!response.body) return response;
  return new Response(watched(response.body, init?.signal ?? null), response);
}

function watched(body: ReadableStream<Uint8Array>, signal: AbortSignal | null): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const silence = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(new CutError(true)), SILENCE_MS);
      });
      try {
        const { done, value } = await Promise.race([reader.read(), silence]);
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(signal?.aborted ? error : new CutError(true));
        reader.cancel().catch(() => {}); // it is gone
      } finally {
        clearTimeout(timer);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
