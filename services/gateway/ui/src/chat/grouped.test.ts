import { expect, test } from "vitest";
import { grouped } from "./grouped";
import type { Message } from "./messages";

const numbered = (from: number, to: number): Message[] =>
  Array.from({ length: to - from }, (_, n) => ({ id: `m${from + n}`, role: "user", parts: [] }));

const ids = (groups: Message[][]) => groups.map((group) => group.map((message) => message.id));

test("a group holds few messages, and all groups hold all of them in order", () => {
  const groups = ids(grouped(numbered(0, 64), new Set()));

  expect(groups.flat()).toEqual(numbered(0, 64).map((message) => message.id));
  expect(Math.max(...groups.map((group) => group.length))).toBeLessThanOrEqual(10);
  expect(groups.length).toBeLessThan(10);
});

test("messages that come in front leave every group as it was", () => {
  const begins = new Set<string>();
  const before = ids(grouped(numbered(100, 123), begins));

  const after = ids(grouped(numbered(70, 123), begins));

  expect(after.slice(-before.length)).toEqual(before);
});

test("messages that come behind fill the last group and leave the others as they were", () => {
  const begins = new Set<string>();
  const before = ids(grouped(numbered(0, 23), begins));

  const after = ids(grouped(numbered(0, 33), begins));

  expect(after.slice(0, 2)).toEqual(before.slice(0, 2));
  expect(after[2]?.slice(0, 3)).toEqual(before[2]);
  expect(after.flat()).toHaveLength(33);
});
