import { describe, expect, test } from "vitest";
import { type Line, hunks, lineDiff } from "./diff";

const told = (lines: readonly Line[]) => lines.map(({ kind, text }) => `${{ same: " ", del: "-", add: "+" }[kind]}${text}`);
const diff = (before: string, after: string) => told(lineDiff(before, after));

describe("lines of two texts", () => {
  test.each([
    ["a\nb\nc", "a\nb\nc", [" a", " b", " c"]],
    ["a\nb\nc", "a\nx\nc", [" a", "-b", "+x", " c"]],
    ["a\nc", "a\nb\nc", [" a", "+b", " c"]],
    ["a\nb\nc", "a\nc", [" a", "-b", " c"]],
    ["", "a", ["-", "+a"]],
    ["a\na", "a", [" a", "-a"]],
    ["a\nb\nc\nd", "b\nd\ne", ["-a", " b", "-c", " d", "+e"]],
  ])("%j → %j", (before, after, expected) => {
    expect(diff(before, after)).toEqual(expected);
  });

  test("both texts can be read back from it", () => {
    const before = "one\ntwo\nthree\ntwo\nfive";
    const after = "two\nthree\nfour\nfive\none";
    const lines = lineDiff(before, after);

    expect(lines.filter((line) => line.kind !== "add").map((line) => line.text).join("\n")).toBe(before);
    expect(lines.filter((line) => line.kind !== "del").map((line) => line.text).join("\n")).toBe(after);
  });

  test("very many different lines are told without comparing each with each", () => {
    const before = Array.from({ length: 20_000 }, (_, index) => `a${index}`).join("\n");
    const began = performance.now();

    expect(lineDiff(before, before.replaceAll("a", "b"))).toHaveLength(40_000);
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

test("only changes are shown, each with the line before and after it, numbered as the new text", () => {
  const before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
  const after = "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10";

  const found = hunks(lineDiff(before, after));

  expect(found.map(({ at, lines }) => [at, told(lines)])).toEqual([
    [2, [" 2", "-3", "+three", " 4"]],
    [9, [" 9", "+10"]],
  ]);
});

test("changes with one line between them are one piece", () => {
  const [first, ...others] = hunks(lineDiff("1\n2\n3\n4\n5", "1\nx\n3\ny\n5"));

  expect(others).toEqual([]);
  expect(told(first?.lines ?? [])).toEqual([" 1", "-2", "+x", " 3", "-4", "+y", " 5"]);
});
