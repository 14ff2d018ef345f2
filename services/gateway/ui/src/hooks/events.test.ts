import { expect, test } from "vitest";
import { meant } from "./events";

const TOOLS = ["read", "write", "edit", "repoBrief"];

test.each([
  ["*", TOOLS],
  ["write|edit", ["write", "edit"]],
  ["re.*", ["read", "repoBrief"]],
  ["rea", []],
])("%s means %j", (matcher, expected) => {
  expect(meant(matcher, TOOLS)).toEqual(expected);
});

test.each(["(", "(?i)READ", "(a+)+b", ".*.*.*.*x", "(?:a*)*b"])("of %s only the server can tell", (matcher) => {
  expect(meant(matcher, TOOLS)).toBeNull();
});
