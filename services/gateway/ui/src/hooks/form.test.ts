import { describe, expect, test } from "vitest";
import type { HookView } from "../contracts";
import { BLANK, type Draft, type HookForm, afterSave, bodyOf, conflicts, errors, formOf, patchOf, put, shown, withEvent } from "./form";

const stored: HookView = {
  id: "h1",
  name: "Guard",
  event: "PreToolUse",
  matcher: "write|edit",
  kind: "http",
  url: "http://127.0.0.1:9000/",
  argv: [],
  hasSecret: true,
  timeoutMs: 5_000,
  onFailure: "block",
  orderIndex: 100,
  enabled: true,
  revision: 3,
  createdAt: "2026-11-30T12:00:00Z",
  updatedAt: "2026-11-30T12:00:00Z",
};
const form = formOf(stored);
const filled: HookForm = { ...BLANK, name: " Guard ", url: "http://127.0.0.1:9000/ " };

test("what is typed is stored without blanks around it, and of its kind alone", () => {
  const program: HookForm = { ...filled, kind: "command", argv: "/hooks/guard.py\n--in\n\nlast\n\n", secret: "0123456789abcdef" };

  expect(bodyOf(filled)).toMatchObject({ name: "Guard", url: "http://127.0.0.1:9000/", argv: [], timeoutMs: 5_000 });
  expect(bodyOf(filled)).not.toHaveProperty("secret");
  expect(bodyOf({ ...filled, secret: "0123456789abcdef" })).toHaveProperty("secret", "0123456789abcdef");
  expect(bodyOf(program)).toMatchObject({ url: "", argv: ["/hooks/guard.py", "--in", "", "last"] });
  expect(bodyOf(program)).not.toHaveProperty("secret");
});

describe("only what changed is sent, with the revision it was compared with", () => {
  test.each<[string, Draft, object]>([
    ["a number", put({}, "timeoutMs", "900", form), { timeoutMs: 900 }],
    ["a number in another spelling", put({}, "timeoutMs", "05000", form), {}],
    ["a new secret", put({}, "secret", "0123456789abcdef", form), { secret: "0123456789abcdef" }],
    ["a secret that is removed", put({}, "secret", null, form), { secret: null }],
    ["a secret that was typed and taken back", put(put({}, "secret", "0123", form), "secret", "", form), {}],
    [
      "another kind: the secret is of no use any more",
      put(put({}, "kind", "command", form), "argv", "/hooks/x", form),
      { kind: "command", url: "", argv: ["/hooks/x"], secret: null },
    ],
  ])("%s", (_, draft, expected) => {
    expect(patchOf(draft, stored)).toEqual({ revision: 3, ...expected });
  });
});

describe("another event", () => {
  test("that is only told cannot refuse, and one without names has nothing to match", () => {
    expect(shown(form, withEvent({}, "SessionEnd", form))).toMatchObject({ event: "SessionEnd", matcher: "*", onFailure: "allow" });
    expect(shown(form, withEvent({}, "PostToolUse", form))).toMatchObject({ matcher: "write|edit", onFailure: "allow" });
    expect(shown(form, withEvent({}, "SubagentStart", form))).toMatchObject({ matcher: "*", onFailure: "block" });
  });

  test("says what a failure means, though that is what it was: the server would choose by itself", () => {
    const told = { ...stored, event: "PostToolUse", onFailure: "allow" } as HookView;
    const draft = put(withEvent({}, "PreToolUse", formOf(told)), "onFailure", "allow", formOf(told));

    expect(patchOf(draft, told)).toEqual({ revision: 3, event: "PreToolUse", onFailure: "allow" });
  });

  test("and back is no change", () => {
    expect(patchOf(withEvent(withEvent({}, "Stop", form), "PreToolUse", form), { ...stored, matcher: "*" })).toEqual({ revision: 3 });
  });
});

test("of two who changed one field one must choose, and a kept secret is no dispute", () => {
  const draft = put(put({}, "name", "Mine", form), "secret", "0123456789abcdef", form);
  const theirs = formOf({ ...stored, name: "Theirs", revision: 4 });

  expect(conflicts(draft, theirs)).toEqual(["name"]);
  expect(afterSave(draft, draft, theirs)).toEqual({});
});

test.each<[keyof HookForm, Partial<HookForm>]>([
  ["name", { name: " " }],
  ["name", { name: "x".repeat(121) }],
  ["matcher", { matcher: "" }],
  ["url", { url: "example.com" }],
  ["url", { url: "https://me:secret@example.com/" }],
  ["argv", { kind: "command", argv: "\n--strict" }],
  ["argv", { kind: "command", argv: "a\n".repeat(33) }],
  ["secret", { secret: "short" }],
  ["timeoutMs", { timeoutMs: "99" }],
  ["timeoutMs", { timeoutMs: "30001" }],
  ["timeoutMs", { timeoutMs: "1e3" }],
  ["orderIndex", { orderIndex: "" }],
])("%s cannot be as in %j", (field, change) => {
  expect(Object.keys(errors({ ...filled, ...change }))).toEqual([field]);
});

test("what fits is no error, and a field of the other kind is none either", () => {
  expect(errors(filled)).toEqual({});
  expect(errors({ ...filled, kind: "command", url: "", argv: "/hooks/guard.py", secret: "short" })).toEqual({});
});
