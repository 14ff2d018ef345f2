import { expect, test } from "vitest";
import { type ServerEvent, serverEvents } from "./sse";

async function read(...pieces: Uint8Array[]): Promise<ServerEvent[]> {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
  const found: ServerEvent[] = [];
  for await (const event of serverEvents(body)) found.push(event);
  return found;
}

test("events are read whole, however the bytes are cut", async () => {
  const bytes = new TextEncoder().encode(': hello\n\nevent: turns\nid: a-1\ndata: {"ü":1}\n\ndata: x\ndata: y\n\n');
  const expected = [
    { event: "turns", id: "a-1", data: '{"ü":1}' },
    { event: "message", id: null, data: "x\ny" },
  ];

  expect(await read(bytes)).toEqual(expected);
  expect(await read(...[...bytes].map((byte) => new Uint8Array([byte])))).toEqual(expected);
});
