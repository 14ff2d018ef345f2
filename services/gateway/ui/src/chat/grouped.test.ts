import { expect, test } from "vitest";
import { grouped } from "./grouped";
import type { Message } from "./messages";

const numbered = (from: number, to: number): Message[] =>
  Array.from({ length: to - from }, (_, n) => ({ id: `m${from + n}`, role: "user", parts: [] }));

const ids = (groups: Message[][]) => groups.map((group) => group.map((message) => message.id));

test("a group holds few messages, and all groups hold all of them in order", () => {
  const groups = ids(grouped(numbered(0, 64), new Set()));

  expect(groups.flat()).toEqual(numbered(0, 64).map((message) => message.id));
  expect(Math.max(...groups.map((group) => group.length))).toBeLessThanOrEqual(6);
  expect(groups.length).toBeLessThan(15);
});

test("messages that come in front leave every group as it was", () => {
  const begins = new Set<string>();
  const before = ids(grouped(numbered(100, 123), begins));

  const after = ids(grouped(numbered(70, 123), begins));

  expect(after.slice(-before.length)).toEqual(before);
});

test("messages that come behind fill the last group and leave the others as they were", () => {
  const begins = new Set<string>();
  const before = ids(grouped(numbered(0, 9), begins));

  const after = ids(grouped(numbered(0, 20), begins));

  expect(after.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
  expect(after[before.length - 1]?.slice(0, before.at(-1)?.length)).toEqual(before.at(-1));
  expect(after.flat()).toHaveLength(20);
  expect(Math.max(...after.map((group) => group.length))).toBeLessThanOrEqual(6);
});
