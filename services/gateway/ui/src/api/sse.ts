/** One server-sent event; `data` lines are joined as the standard says. */
export interface ServerEvent {
  event: string;
  id: string | null;
  data: string;
}

/** Read server-sent events from a response body until it ends. `onBytes` is called for every piece, comments too. */
export async function* serverEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void = () => {},
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      rest += decoder.decode(value, { stream: true });
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const parsed = parse(rest.slice(0, end));
        rest = rest.slice(end + 2);
        if (parsed) yield parsed;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // it may have ended already; nobody waits for it
  }
}

function parse(block: string): ServerEvent | null {
  let event = "message";
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") event = value;
    else if (name === "id") id = value;
    else if (name === "data") data.push(value);
  }
  return data.length || event !== "message" ? { event, id, data: data.join("\n") } : null;
}
