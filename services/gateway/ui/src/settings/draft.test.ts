import { describe, expect, test } from "vitest";
import { type AgentRuntimeView, agentRuntimeFields } from "../contracts";
import { afterSave, changes, conflicts, errors, keepMine, parse, patchOf, type, without } from "./draft";
import { CHOICES, FIELDS, GROUPS, LABELS } from "./fields";

const defaults = Object.fromEntries(Object.entries(agentRuntimeFields).map(([field, spec]) => [field, spec.default]));
const stored = { ...defaults, revision: 3, updatedAt: "2026-11-30T12:00:00Z" } as unknown as AgentRuntimeView;

test("every setting of the contract has a label and stands in one group", () => {
  expect(Object.keys(LABELS).sort()).toEqual(Object.keys(agentRuntimeFields).sort());
  expect(GROUPS.flatMap((group) => group.fields).toSorted()).toEqual(Object.keys(agentRuntimeFields).sort());
});

test("nothing is told to be unused: every setting is read", () => {
  expect(GROUPS.filter((group) => group.note)).toEqual([]);
});

test("what is said of a choice speaks of its buttons by their words", () => {
  const chosen = FIELDS.filter((field) => agentRuntimeFields[field].choices);
  const strange = chosen.flatMap((field) => {
    const { meaning, choices } = agentRuntimeFields[field];
    const said = (LABELS[field].meaning ?? meaning).split(/\W+/);
    return (choices ?? []).filter((choice) => CHOICES[choice] !== choice && said.includes(choice));
  });
  expect([chosen.length > 0, strange]).toEqual([true, []]);
});

describe("reading what was typed", () => {
  const steps = agentRuntimeFields.supervisorMaxSteps;
  test.each([
    [" 64 ", { value: 64 }],
    ["0", { error: "0 is too low. It goes from 1 to 128." }],
    ["500", { error: "500 is too high. It goes from 1 to 128." }],
    ["3.5", { error: "“3.5” is no whole number. It goes from 1 to 128." }],
    ["1e2", { error: "“1e2” is no whole number. It goes from 1 to 128." }],
    ["", { error: "A number is missing: from 1 to 128." }],
  ])("a number: %j", (text, expected) => {
    expect(parse(steps, text)).toEqual(expected);
  });

  test("an empty text is none where none is allowed, and refused elsewhere", () => {
    expect(parse(agentRuntimeFields.defaultModel, "  ")).toEqual({ value: null });
    expect(parse(agentRuntimeFields.finalResponseFeedback, "")).toEqual({ error: "This cannot be empty." });
  });

  test("a text may be as long as the contract says, counted in characters", () => {
    expect(parse(agentRuntimeFields.delegationFailureText, "🌧".repeat(2_000)).error).toBeUndefined();
    expect(parse(agentRuntimeFields.delegationFailureText, "x".repeat(2_001)).error).toMatch(/at most/);
  });

  test("only a choice of the contract is taken", () => {
    expect(parse(agentRuntimeFields.modelSource, "router")).toEqual({ value: "router" });
    expect(parse(agentRuntimeFields.modelSource, "cloud").error).toBe("One of auto, router, local.");
  });
});

describe("a draft", () => {
  test("only what changed is sent, with the revision it was compared with", () => {
    let draft = type({}, "supervisorMaxSteps", "64", stored);
    draft = type(draft, "concurrentToolCalls", "9", stored);
    draft = type(draft, "concurrentToolCalls", "4", stored);

    expect(patchOf(draft, stored)).toEqual({ revision: 3, supervisorMaxSteps: 64 });
  });

  test("what is wrong counts as a change and names its field", () => {
    const draft = type({}, "supervisorMaxSteps", "many", stored);

    expect(changes(draft, stored)).toEqual(["supervisorMaxSteps"]);
    expect(Object.keys(errors(draft))).toEqual(["supervisorMaxSteps"]);
  });

  test("a save of somebody else conflicts only where both changed the same field to different values", () => {
    const draft = type(type({}, "supervisorMaxSteps", "64", stored), "concurrentToolCalls", "8", stored);
    const theirs = { ...stored, revision: 4, supervisorMaxSteps: 16, concurrentToolCalls: 8, processorRetries: 0 };

    expect(conflicts(draft, theirs)).toEqual(["supervisorMaxSteps"]);
    expect(patchOf(keepMine(draft, "supervisorMaxSteps", theirs), theirs)).toEqual({ revision: 4, supervisorMaxSteps: 64 });
    expect(conflicts(keepMine(draft, "supervisorMaxSteps", theirs), theirs)).toEqual([]);
    expect(conflicts(without(draft, ["supervisorMaxSteps"]), theirs)).toEqual([]);
  });

  test("what was typed while a save was on its way is kept", () => {
    const sent = type({}, "supervisorMaxSteps", "64", stored);
    const now = type(type(sent, "supervisorMaxSteps", "65", stored), "processorRetries", "1", stored);
    const saved = { ...stored, revision: 4, supervisorMaxSteps: 64 };

    const draft = afterSave(now, sent, saved);

    expect(conflicts(draft, saved)).toEqual([]);
    expect(patchOf(draft, saved)).toEqual({ revision: 4, supervisorMaxSteps: 65, processorRetries: 1 });
  });
});
