import { describe, expect, test } from "vitest";
import type { SkillView } from "../contracts";
import { type Draft, type Pair, type SkillForm, afterSave, bodyOf, changesOf, conflicts, errors, formOf, patchOf, put, shown } from "./form";

const stored: SkillView = {
  id: "s1",
  agentId: "researcher",
  name: "read-a-log",
  description: "Reads logs.",
  instructions: "Look.\nThen say.",
  license: null,
  compatibility: null,
  metadata: {},
  allowedTools: null,
  references: { "b.md": "B", "a.md": "A" },
  provenance: null,
  evolutionManaged: false,
  enabled: true,
  revision: 3,
  createdAt: "2026-11-30T12:00:00Z",
  updatedAt: "2026-11-30T12:00:00Z",
};
const form = formOf(stored);
const references = (...pairs: Pair[]): Draft => put({}, "references", pairs, form);

test("only what changed is sent, named texts together, what is empty as null", () => {
  expect(patchOf(references(["a.md", "A"], ["b.md", "B two"]), stored)).toEqual({ revision: 3, references: { "a.md": "A", "b.md": "B two" } });
  expect(patchOf(put({}, "license", " MIT ", form), stored)).toEqual({ revision: 3, license: "MIT" });
  expect(patchOf(put({}, "license", "", formOf({ ...stored, license: "MIT" })), { ...stored, license: "MIT" })).toEqual({ revision: 3, license: null });
});

test("the order in which the server tells named texts is no change", () => {
  expect(references(["a.md", "A"], ["b.md", "B"])).toEqual({});
  expect(conflicts(references(["a.md", "A"]), formOf({ ...stored, references: { "a.md": "A", "b.md": "B" } }))).toEqual([]);
});

test("what was typed while it was saved is kept", () => {
  const sent = put({}, "name", "read-logs", form);
  const later = put(sent, "instructions", "Look twice.", form);

  expect(shown(form, afterSave(later, sent, formOf({ ...stored, name: "read-logs" })))).toMatchObject({ instructions: "Look twice." });
});

test("each named text is told by itself: changed, new, removed", () => {
  const after: SkillForm = { ...form, instructions: "Look.\nThen write.", references: [["a.md", "A two"], ["c.md", "C"]] };

  expect(changesOf(form, after).map(({ label, kind, before, after: now }) => [label, kind, before, now])).toEqual([
    ["Instructions", "text", "Look.\nThen say.", "Look.\nThen write."],
    ["references/a.md", "text", "A", "A two"],
    ["references/b.md (removed)", "text", "B", ""],
    ["references/c.md (new)", "text", "", "C"],
  ]);
});

describe("what cannot be saved", () => {
  test.each<[keyof SkillForm, Partial<SkillForm>]>([
    ["name", { name: "Read a log" }],
    ["name", { name: "read--log" }],
    ["name", { name: "x".repeat(65) }],
    ["description", { description: " " }],
    ["instructions", { instructions: "x".repeat(50_001) }],
    ["references", { references: [["a.md", ""], ["a.md ", ""]] }],
    ["references", { references: [["", ""]] }],
    ["references", { references: [["../a.md", ""]] }],
    ["references", { references: [["/a.md", ""]] }],
    ["references", { references: [["a", ""], ["a/b", ""]] }],
    ["references", { references: [["a.md", "x".repeat(100_001)]] }],
    ["references", { references: ["a", "b", "c", "d", "e"].map((name) => [name, "ü".repeat(50_000)] as const) }],
    ["metadata", { metadata: [["author", "x".repeat(1_001)]] }],
  ])("%s in %j", (field, change) => {
    expect(Object.keys(errors({ ...form, ...change }))).toEqual([field]);
  });

  test("and what can", () => {
    expect(errors({ ...form, references: [["api/errors.md", "🌧".repeat(90_000)]] })).toEqual({});
    expect(bodyOf({ ...form, name: " read-a-log " }).name).toBe("read-a-log");
  });
});
