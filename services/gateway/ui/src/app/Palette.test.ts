// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { score } from "./Palette";

test("what begins with the letters comes before what holds them, and before what holds them in order", () => {
  const ranks = ["Observe", "Go to Observe", "Stop the turn"].map((title) => score(title, "obs"));

  expect(ranks[0]).toBeGreaterThan(ranks[1] ?? 0);
  expect(ranks[2]).toBe(0);
});

test("letters that lie far apart match nothing", () => {
  expect(score("Register a workspace", "stop")).toBe(0);
  expect(score("Show the keys", "shky")).toBe(0);
  expect(score("Settings", "setng")).toBeGreaterThan(0);
});
