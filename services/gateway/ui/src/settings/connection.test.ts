import { describe, expect, test } from "vitest";
import type { ModelConnectionView } from "../contracts";
import { isSameServer, keyField, keyOf } from "./connection";

const view: ModelConnectionView = {
  source: "page",
  url: "https://models.example/v1",
  hasKey: true,
  keyHint: "3f9a",
  model: "big",
  lastError: null,
  embedded: { available: false, model: null, note: "" },
  revision: 2,
};

test.each([
  ["https://models.example/v1", "https://models.example/other", true],
  ["https://models.example/v1", "http://models.example/v1", false],
  ["https://models.example/v1", "https://models.example.evil/v1", false],
  ["https://models.example/v1", "https://", false],
  [null, "https://models.example/v1", false],
])("the server of %s and %s: same %s", (stored, typed, expected) => {
  expect(isSameServer(stored, typed)).toBe(expected);
});

describe("the key that is sent", () => {
  test("an empty field keeps the stored one for the same server only", () => {
    expect(keyField(keyOf(view, "https://models.example/v1", "", false))).toEqual({});
    expect(keyField(keyOf(view, "https://elsewhere.example/v1", "", false))).toEqual({ key: null });
  });

  test("a removed one is null, a typed one goes before both", () => {
    expect(keyField(keyOf(view, "https://models.example/v1", "", true))).toEqual({ key: null });
    expect(keyField(keyOf(view, "https://models.example/v1", " sk-1 ", true))).toEqual({ key: "sk-1" });
  });
});
