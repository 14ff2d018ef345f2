// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from "vitest";
import { ChatSession } from "./session";

const PAGE = 50;
const id = (n: number) => `m${String(n).padStart(4, "0")}`;

/** A stored chat of so many messages, as the gateway shows pages of it; returns what was asked for. */
function stored(count: number): { size: number; asked: string[] } {
  const chat = { size: count, asked: [] as string[] };
  vi.stubGlobal("fetch", async (path: string) => {
    chat.asked.push(path);
    const before = new URLSearchParams(path.split("?")[1]).get("before");
    const end = before ? Number(before.slice(1)) : chat.size;
    const begin = Math.max(0, end - PAGE);
    const messages = Array.from({ length: end - begin }, (_, n) => ({
      id: id(begin + n),
      role: (begin + n) % 2 ? "assistant" : "user",
      parts: [{ type: "text", text: "It measured the wind. ".repeat(20) }],
    }));
    const view = { id: "chat", revision: 1, updatedAt: "2026-01-01T00:00:00Z", runningTurnId: null, archivedAt: null };
    return Response.json({ ...view, messages, previousCursor: begin > 0 ? id(begin) : null, nextCursor: null });
  });
  return chat;
}

async function opened(): Promise<ChatSession> {
  const session = new ChatSession("chat", false);
  await vi.waitFor(() => expect(session.state.phase).toBe("ready"), 10_000);
  return session;
}

const drawn = (session: ChatSession) => session.chat.messages.slice(session.drawn.from).map((each) => each.id);

afterEach(() => vi.unstubAllGlobals());

test("opening a chat draws what fills the screen of its end, not all that was loaded", async () => {
  stored(200);

  const session = await opened();

  expect(session.chat.messages).toHaveLength(PAGE);
  expect(drawn(session).at(-1)).toBe(id(199));
  expect(drawn(session).length).toBeGreaterThan(2);
  expect(drawn(session).length).toBeLessThan(15);
});

test("going up draws all that was loaded before it asks for more, and reaches the first message", async () => {
  const chat = stored(200);
  const session = await opened();

  for (let steps = 0; drawn(session)[0] !== id(0); steps++) {
    expect(steps).toBeLessThan(200);
    const before = drawn(session);
    await session.loadOlder();
    expect(drawn(session).slice(-before.length)).toEqual(before);
    expect(drawn(session).length - before.length).toBeLessThan(25);
  }

  expect(drawn(session)).toHaveLength(200);
  expect(chat.asked).toHaveLength(4);
});

test("what is drawn stays drawn when the stored chat has grown", async () => {
  const chat = stored(200);
  const session = await opened();
  const before = drawn(session);

  chat.size = 202;
  await session.open();

  expect(drawn(session)).toEqual([...before, id(200), id(201)]);
});

test("a message that is loaded and not drawn yet is drawn when it is looked for", async () => {
  const chat = stored(200);
  const session = await opened();
  expect(drawn(session)).not.toContain(id(160));

  expect(await session.reveal(id(160))).toBe("shown");

  expect(drawn(session)).toContain(id(160));
  expect(chat.asked).toHaveLength(1);
});

test("a chat that was left is drawn from its end again", async () => {
  stored(200);
  const session = await opened();
  const first = drawn(session);
  await session.loadOlder();

  session.drawn.endOnly();

  expect(drawn(session)).toEqual(first);
});

test("spare time draws the page that was loaded, and no more", async () => {
  const chat = stored(200);
  const session = await opened();
  await session.loadOlder();

  for (let times = 0; times < 50; times++) session.drawn.spare();

  expect(drawn(session)).toHaveLength(PAGE);
  expect(chat.asked).toHaveLength(1);
});
