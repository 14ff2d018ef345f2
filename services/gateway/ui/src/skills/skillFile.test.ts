import { describe, expect, test } from "vitest";
import { parseSkill, renderSkill } from "./skillFile";

const LOG = `---
name: read-a-log
description: >-
  Finds what went wrong
  in a log.
license: MIT
allowed-tools: [grep, read]
metadata:
  version: 1.0
  author: "Mara: Quality"
model: big
---

# Steps

1. Look at the end.
---
2. Look up.
`;

test("front matter and instructions are read as they were written", () => {
  expect(parseSkill(`\ufeff${LOG.replaceAll("\n", "\r\n")}`)).toEqual({
    fields: {
      name: "read-a-log",
      description: "Finds what went wrong in a log.",
      instructions: "# Steps\n\n1. Look at the end.\n---\n2. Look up.",
      license: "MIT",
      compatibility: null,
      allowedTools: "grep read",
      metadata: { version: "1.0", author: "Mara: Quality" },
    },
    unknown: ["model"],
  });
});

test("what is written is read as the same, whatever stands in it", () => {
  const fields = {
    name: "odd",
    description: "A colon: here, a # there, and “yes”.\nTwo lines.",
    instructions: "Do it.",
    license: "1.0",
    compatibility: "null and void",
    allowedTools: null,
    metadata: { on: "true", empty: "" },
  };

  expect(parseSkill(renderSkill(fields)).fields).toEqual(fields);
  expect(renderSkill({ ...fields, metadata: {} })).not.toContain("metadata");
});

describe("what is no skill is told in a sentence", () => {
  test.each([
    ["# Just text", "front matter"],
    ["---\nname: x", "front matter"],
    ["---\n- a\n---\n", "not a list of keys and values"],
    ["---\nname: a: b\n---\n", "quotes around it"],
    ["---\nname: x\nname: y\n---\n", "cannot be read"],
    ["---\na: &a [x]\nname: x\nmetadata: {b: *a}\n---\n", "aliases"],
    ["---\nname: [x]\n---\n", "name of the front matter is no text"],
    ["---\nmetadata: x\n---\n", "metadata"],
    [`---\nx: ${"[".repeat(15_000)}\n---\n`, "cannot be read"],
    [`---\nname: ${"x".repeat(30_000)}\n---\n`, "too long"],
  ])("%j", (text, words) => {
    expect(() => parseSkill(text)).toThrow(words);
  });
});
