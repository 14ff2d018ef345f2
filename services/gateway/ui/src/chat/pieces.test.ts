import { expect, test } from "vitest";
import { type Pieces, cut } from "./pieces";

const SECTIONS = [
  "## Part N\n\nA paragraph of *some* words, with `code` and [a link](https://station.example).\n\n",
  "| a | b |\n|---|---|\n| 1 | N |\n| 2 | 3 |\n\n",
  "```python\nfirst = N\n\nsecond = [first][0]\n\n\nthird = 2\n```\n\n",
  "1. One of N\n\n   With a second paragraph.\n\n2. Two\n   - inner\n\n     ```\n     fenced\n\n     inside\n     ```\n\n",
  "> quoted N\n>\n> and more\n\n",
  "    indented N\n\n    code\n\n",
];

function sections(count: number): string {
  return Array.from({ length: count }, (_, n) => (SECTIONS[n % SECTIONS.length] ?? "").replaceAll("N", String(n))).join("");
}

function grown(text: string, step: number): Pieces[] {
  const seen: Pieces[] = [];
  for (let end = step; end < text.length + step; end += step) seen.push(cut(text.slice(0, end), seen.at(-1) ?? null));
  return seen;
}

test("a short text is one piece", () => {
  expect(cut(sections(6), null).pieces).toEqual([sections(6)]);
});

test.each([7, 64, 5_000])("pieces of a text that grows by %i never change, and are the whole text", (step) => {
  const text = sections(600);

  const seen = grown(text, step);

  seen.forEach((each, index) => {
    expect(each.pieces.join("")).toBe(each.text);
    const settled = each.pieces.slice(0, -1);
    expect(seen[index + 1]?.pieces.slice(0, settled.length) ?? settled).toEqual(settled);
  });
  expect(seen.at(-1)?.pieces.length).toBeGreaterThan(5);
  expect(Math.max(...seen.map((each) => each.pieces.at(-1)?.length ?? 0))).toBeLessThan(10_000);
});

test("a piece begins where a block of the whole text begins", () => {
  const starts = new Set(["## ", "| a", "```", "1. ", "> q", "   "]);

  for (const piece of grown(sections(600), 23).at(-1)?.pieces ?? []) expect(starts).toContain(piece.slice(0, 3));
});

test("a list of any length stays one list", () => {
  const list = Array.from({ length: 900 }, (_, n) => `${n + 1}. Item of the list\n\n`).join("");

  expect(grown(list, 50).at(-1)?.pieces).toEqual([list]);
});

test("what names a source by reference is not cut from it", () => {
  const text = `See [the station][1].\n\n${sections(100)}[1]: https://station.example\n`;

  expect(cut(text, null).pieces).toEqual([text]);
  expect(grown(text, 100).at(-1)?.pieces).toEqual([text]);
});

test("another text is cut anew", () => {
  const first = cut(sections(300), null);
  const other = `Other. ${sections(300)}`;

  expect(cut(other, first)).toEqual(cut(other, null));
});
