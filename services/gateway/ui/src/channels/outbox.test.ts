// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ChannelMessage, PostBody } from "../contracts";
import { Outbox } from "./outbox";

const HOUR_MS = 3_600_000;
const asked: { key: string; body: PostBody }[] = [];
let answers: (() => Response | Promise<Response>)[] = [];

const taken = () => Response.json({ id: "stored" }, { status: 201 });
const refused = (status: number, error: string, headers = {}) => Response.json({ error, code: "x" }, { status, headers });
const lost = () => Promise.reject(new TypeError("Failed to fetch"));

beforeEach(() => {
  localStorage.clear();
  asked.length = 0;
  vi.useFakeTimers();
  vi.stubGlobal("fetch", (_path: string, init: RequestInit) => {
    asked.push({ key: new Headers(init.headers).get("idempotency-key") ?? "", body: JSON.parse(String(init.body)) as PostBody });
    return Promise.resolve((answers.shift() ?? taken)());
  });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  answers = [];
});

function open(now?: number): { outbox: Outbox; arrived: ChannelMessage[] } {
  const arrived: ChannelMessage[] = [];
  return { outbox: new Outbox("general", (message) => arrived.push(message), now), arrived };
}

const settled = () => vi.advanceTimersByTimeAsync(0);

test("a post is kept until it is taken, and sent again under the same key", async () => {
  answers = [lost, () => refused(503, "Chat does not answer."), taken];
  const { outbox, arrived } = open();

  outbox.send({ body: "Good morning." });
  await settled();
  const [post] = outbox.items;
  expect(post && outbox.standing(post.id)).toMatchObject({ is: "waiting" });
  expect(Object.keys(localStorage)).toEqual([`popagent.unsent.general.${post?.id}`]);
  await vi.advanceTimersByTimeAsync(1_000);
  await vi.advanceTimersByTimeAsync(2_000);

  expect(asked.map(({ key }) => key)).toEqual([post?.id, post?.id, post?.id]);
  expect([outbox.items, arrived.length, localStorage.length]).toEqual([[], 1, 0]);
});

test("what follows waits for what is on its way, and goes past what was refused", async () => {
  answers = [lost, () => refused(422, "There is no such workspace."), taken];
  const { outbox } = open();

  outbox.send({ body: "first", workspaceId: "gone" });
  outbox.send({ body: "second" });
  await settled();
  expect(asked.map(({ body }) => body.body)).toEqual(["first"]);
  dispatchEvent(new Event("online"));
  await settled();

  expect(asked.map(({ body }) => body.body)).toEqual(["first", "first", "second"]);
  expect(outbox.items.map(({ post, id }) => [post.body, outbox.standing(id)])).toEqual([
    ["first", { is: "aside", why: "There is no such workspace." }],
  ]);
});

test("after too many posts it waits as long as it is told to", async () => {
  answers = [() => refused(429, "There were 60 posts within a minute. Wait a little.", { "retry-after": "20" })];
  const { outbox } = open();

  outbox.send({ body: "one more" });
  await vi.advanceTimersByTimeAsync(19_000);
  expect(asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1_000);

  expect([asked.length, outbox.items.length]).toEqual([2, 0]);
});

test("another load of the page sends what did not arrive, but not what was written long ago", async () => {
  const keep = (id: string, at: number) => localStorage.setItem(`popagent.unsent.general.${id}`, JSON.stringify({ id, at, post: { body: id } }));
  keep("late", 5 * HOUR_MS - 1);
  keep("old", 1);
  localStorage.setItem("popagent.unsent.other.x", JSON.stringify({ id: "x", at: 1, post: { body: "x" } }));

  const { outbox } = open(5 * HOUR_MS);
  await settled();
  expect(asked.map(({ key }) => key)).toEqual(["late"]);
  expect(outbox.standing("old").is).toBe("aside");
  outbox.again("old");
  await settled();

  expect(asked.map(({ key }) => key)).toEqual(["late", "old"]);
  expect(Object.keys(localStorage)).toEqual(["popagent.unsent.other.x"]);
});

test("what was heard of needs no further attempt, and what was taken back gets none", async () => {
  answers = [lost];
  const { outbox } = open();
  outbox.send({ body: "arrived after all" });
  await settled();

  outbox.drop(outbox.items[0]?.id ?? "");
  await vi.advanceTimersByTimeAsync(60_000);

  expect([asked.length, outbox.items, localStorage.length]).toEqual([1, [], 0]);
});
