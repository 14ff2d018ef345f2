// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ChannelHistory, ChannelMessage } from "../contracts";
import { ChannelLog } from "./channelLog";

const LAST = 120;
const PATIENT = { timeout: 10_000 };
const encoder = new TextEncoder();
let tell: (name: string, message: ChannelMessage | null) => void;
let asked: string[];
/** Messages that were written since, by their place. */
let since: Map<number, ChannelMessage>;

function message(seq: number, fields: Partial<ChannelMessage> = {}): ChannelMessage {
  const of = { channelId: "general", threadId: null, authorKind: "user", authorId: "user", authorName: "User", mentions: [], workspaceId: null, run: null, taskId: null } as const;
  return { ...of, id: `m${seq}`, seq, revision: seq, body: `Line ${seq}`, editedAt: null, deletedAt: null, createdAt: "2026-05-01T10:00:00Z", ...fields, mentions: [] };
}

function history(search: URLSearchParams): ChannelHistory {
  const newest = Math.max(LAST, ...since.keys());
  const end = Math.min(newest, Number(search.get("beforeSeq") ?? newest + 1) - 1);
  const begin = Math.max(1, end - Number(search.get("limit")) + 1);
  const items = Array.from({ length: end - begin + 1 }, (_, index) => since.get(begin + index) ?? message(begin + index));
  return { items, previousSeq: begin > 1 ? begin : null, revision: newest };
}

beforeEach(() => {
  asked = [];
  since = new Map();
  vi.stubGlobal("fetch", (path: string, init: RequestInit) => {
    const { pathname, searchParams } = new URL(path, "http://localhost");
    if (!pathname.endsWith("/events")) return Promise.resolve(Response.json(history(searchParams)));
    asked.push(new Headers(init.headers).get("last-event-id") ?? "");
    return Promise.resolve(
      new Response(
        new ReadableStream({
          start(controller) {
            tell = (name, told) => controller.enqueue(encoder.encode(`event: ${name}\nid: ${told?.revision ?? 0}\ndata: ${JSON.stringify(told)}\n\n`));
          },
        }),
      ),
    );
  });
});

afterEach(() => vi.unstubAllGlobals());

async function followed(): Promise<ChannelLog> {
  const log = new ChannelLog("general");
  log.follow();
  await vi.waitFor(() => expect(asked).toEqual([String(LAST)]), PATIENT);
  return log;
}

const places = (log: ChannelLog) => [log.state.items[0]?.seq, log.state.items.at(-1)?.seq];

vi.setConfig({ testTimeout: 30_000 });

test("the newest page is followed from where it ended, and told which of what is heard is new", async () => {
  const log = await followed();
  const heard: [number, boolean][] = [];
  log.hear(({ seq }, isNew) => heard.push([seq, isNew]));

  tell("message", message(LAST + 1));
  tell("message", message(LAST, { revision: LAST + 2, body: "changed" }));
  await vi.waitFor(() => expect(heard).toHaveLength(2), PATIENT);

  expect(heard).toEqual([
    [LAST + 1, true],
    [LAST, false],
  ]);
  expect(log.state.items.slice(-2).map(({ body }) => body)).toEqual(["changed", `Line ${LAST + 1}`]);
});

test("where the place is lost the history is read again, whatever was known before", async () => {
  const log = await followed();
  log.take(message(LAST, { revision: 900, body: "of before" }));

  since.set(LAST, message(LAST, { body: "restored" }));
  tell("resync", null);

  await vi.waitFor(() => expect(log.state.items.at(-1)?.body).toBe("restored"), PATIENT);
});

test("a place far back is opened with what stands around it, read on from, and left for the newest", async () => {
  const log = await followed();

  expect(await log.reveal(7)).toBe(true);
  expect([places(log), log.state.hasNewer]).toEqual([[1, 27], true]);
  since.set(LAST + 1, message(LAST + 1));
  log.take(message(LAST + 1));
  await log.loadNewer();
  expect([places(log), log.state.hasNewer]).toEqual([[1, 77], true]);
  await log.toNewest();

  expect([places(log), log.state.hasNewer]).toEqual([[LAST - 48, LAST + 1], false]);
  await log.loadOlder();
  expect(places(log)).toEqual([LAST - 98, LAST + 1]);
  expect(await log.reveal(LAST + 5)).toBe(false);
});
