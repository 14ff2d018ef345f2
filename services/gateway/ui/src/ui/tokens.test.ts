import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const SURFACES = ["bg", "bg-rail", "bg-raised", "bg-well", "bg-hover", "bg-selected"];
const STATES = ["live", "wait", "fail", "ok"];
const INKS = ["ink", "ink-2", "ink-3"];
const KINDS = ["agent", "model", "tool", "wire", "store"];

/** WCAG 2.2 AA: text on what lies under it, and edges that tell one thing from another. */
const TEXT: [string, string][] = [
  ...on([...INKS, "link"], SURFACES),
  ...STATES.flatMap((state) => on([`${state}-ink`], [...SURFACES, `${state}-bg`])),
  ...STATES.flatMap((state) => on(INKS, [`${state}-bg`])),
  ...on(["on-accent"], ["accent", "accent-hover"]),
  ["on-wait", "wait-fill"],
  ["on-fail", "fail-fill"],
  ["ink", "mark"],
  ...on(
    KINDS.map((kind) => `kind-${kind}`),
    SURFACES.slice(0, 4),
  ),
];
const EDGES = on(["line-strong", "focus", "accent"], SURFACES);

function on(above: string[], below: string[]): [string, string][] {
  return above.flatMap((one) => below.map((other): [string, string] => [one, other]));
}

function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const channel = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const css = readFileSync(join(import.meta.dirname, "tokens.css"), "utf8");
const found = [...css.matchAll(/--([\w-]+):\s*light-dark\((#\w{6}), (#\w{6})\)/g)];

test.each([
  ["light", 2],
  ["dark", 3],
] as const)("every pair of colours that meets can be told apart in %s", (_, at) => {
  const colours = new Map(found.map((match) => [match[1], match[at]]));
  const colour = (name: string) => colours.get(name) ?? expect.fail(`there is no --${name}`);
  const low = (pairs: [string, string][], least: number) =>
    pairs
      .map(([above, below]) => [`${above} on ${below}`, contrast(colour(above), colour(below))] as const)
      .filter(([, ratio]) => ratio < least);

  expect(low(TEXT, 4.5)).toEqual([]);
  expect(low(EDGES, 3)).toEqual([]);
});
