import { describe, expect, test } from "vitest";
import type { AgentView } from "../contracts";
import { type Draft, afterSave, changes, conflicts, errors, keepMine, patchOf, put, shown, without } from "./draft";

const stored: AgentView = {
  id: "researcher",
  name: "Researcher",
  delegationDescription: "Finds things out.",
  instructions: "Look.",
  sourceUrl: null,
  workspaceAccess: "read-only",
  browserAccess: false,
  delegable: true,
  tools: ["read", "grep"],
  modelOverride: null,
  overrideIsSeeded: false,
  revision: 3,
  updatedAt: "2026-11-30T12:00:00Z",
};
const draft: Draft = put(put({}, "name", "Scout", stored), "tools", ["read"], stored);

test("what was put in is shown over what is stored, and only that is sent", () => {
  expect(shown(stored, draft)).toEqual({ ...stored, name: "Scout", tools: ["read"] });
  expect(patchOf(draft, stored)).toEqual({ revision: 3, name: "Scout", tools: ["read"] });
});

test("what is put back is no change", () => {
  expect(put(put(draft, "name", "Researcher", stored), "tools", ["read", "grep"], stored)).toEqual({});
  expect(changes({ name: { value: "Researcher", base: "Old" } }, stored)).toEqual([]);
});

test("null is a value to save", () => {
  const owner = { ...stored, modelOverride: "m" };
  expect(patchOf(put({}, "modelOverride", null, owner), owner)).toEqual({ revision: 3, modelOverride: null });
});

describe("somebody else saved", () => {
  const theirs = { ...stored, name: "Finder", instructions: "Search.", revision: 4 };

  test("where both changed a field one must choose; elsewhere theirs is shown and mine is kept", () => {
    expect(conflicts(draft, theirs)).toEqual(["name"]);
    expect(shown(theirs, draft)).toEqual({ ...theirs, name: "Scout", tools: ["read"] });
  });

  test("either choice leaves nothing in dispute and sends the new revision", () => {
    const mine = keepMine(draft, "name", theirs);
    expect(conflicts(mine, theirs)).toEqual([]);
    expect(patchOf(mine, theirs)).toEqual({ revision: 4, name: "Scout", tools: ["read"] });
    expect(patchOf(without(draft, ["name"]), theirs)).toEqual({ revision: 4, tools: ["read"] });
  });

  test("the same change is no dispute", () => {
    expect(conflicts(draft, { ...theirs, name: "Scout" })).toEqual([]);
  });
});

test("what was typed while it was saved is kept", () => {
  const later = put(draft, "name", "Scout two", stored);
  const saved = { ...stored, name: "Scout", tools: ["read"], revision: 4 };

  const rest = afterSave(later, draft, saved);

  expect(rest).toEqual({ name: { value: "Scout two", base: "Scout" } });
  expect(conflicts(rest, saved)).toEqual([]);
  expect(afterSave(draft, draft, saved)).toEqual({});
});

test.each([
  ["name", " "],
  ["name", "x".repeat(81)],
  ["instructions", ""],
  ["delegationDescription", "x".repeat(1_001)],
  ["sourceUrl", "example.org"],
  ["sourceUrl", "https://a b"],
  ["modelOverride", "a b"],
] as const)("%s cannot be %j", (field, value) => {
  expect(errors(put({}, field, value, stored))).toHaveProperty(field);
});

test("what fits the contract is no error", () => {
  const good: Draft = put(put({}, "instructions", "🌧".repeat(20_000), stored), "sourceUrl", "https://example.org/a", stored);
  expect(errors(put(good, "modelOverride", null, { ...stored, modelOverride: "m" }))).toEqual({});
});
