// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ResumedStream, whileInView } from "./resumed";
import type { ServerEvent } from "./sse";

class Stream extends ResumedStream {
  readonly heard: [string, string | null, boolean][] = [];

  protected override take({ event, id }: ServerEvent, isFirst: boolean): void {
    this.heard.push([event, id, isFirst]);
  }
}

const asked: (string | null)[] = [];

beforeEach(() => {
  asked.length = 0;
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function answers(...bodies: string[]): void {
  vi.stubGlobal("fetch", (_path: string, { headers, signal }: RequestInit) => {
    asked.push(new Headers(headers).get("last-event-id"));
    const body = bodies.shift();
    if (body !== undefined) return Promise.resolve(new Response(body));
    // Nothing is said any more until it is left.
    return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(new Error("left"))));
  });
}

test("a stream goes on from its last id after a break, sooner once it was heard", async () => {
  answers("event: ready\nid: 4\ndata: {}\n\n", "", "event: ready\nid: 4\ndata: {}\n\nevent: message\nid: 5\ndata: {}\n\n");
  const stream = new Stream("/api/x");
  const stop = stream.start();

  await vi.advanceTimersByTimeAsync(500);
  expect([asked, stream.connection]).toEqual([[null, "4"], "lost"]);
  await vi.advanceTimersByTimeAsync(1_000);
  await vi.advanceTimersByTimeAsync(500);

  expect(asked).toEqual([null, "4", "4", "5"]);
  expect(stream.heard).toEqual([
    ["ready", "4", true],
    ["ready", "4", false],
    ["message", "5", false],
  ]);
  stop();
});

test("a page that is out of view keeps no connection", () => {
  const told: string[] = [];
  let state = "visible";
  vi.spyOn(document, "visibilityState", "get").mockImplementation(() => state as DocumentVisibilityState);
  const become = (next: string) => {
    state = next;
    document.dispatchEvent(new Event("visibilitychange"));
  };

  const end = whileInView(() => {
    told.push("open");
    return () => void told.push("closed");
  });
  become("visible");
  become("hidden");
  become("visible");
  end();
  become("hidden");

  expect(told).toEqual(["open", "closed", "open", "closed"]);
});
