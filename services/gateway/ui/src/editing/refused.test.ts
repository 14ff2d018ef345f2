import { expect, test } from "vitest";
import { ApiError } from "../api/client";
import { refusedBy } from "./refused";

const WORDS = "There is no such model.";
const refused = (field: string | null) => refusedBy(new ApiError(WORDS, 422, "unknown_model", field, {}), ["name", "model", "tools"]);

test.each([
  ["model", { model: WORDS }],
  ["body.model", { model: WORDS }],
  ["tools.3", { tools: WORDS }],
  ["tools.name", { tools: WORDS }],
  ["elsewhere", {}],
  [null, {}],
])("a refusal stands beside its field, also where the contract names a place within: %j", (field, expected) => {
  expect(refused(field)).toEqual(expected);
});

test("what is no answer of the server is of no field", () => {
  expect(refusedBy(new Error("away"), ["name"])).toEqual({});
  expect(refusedBy(null, ["name"])).toEqual({});
});
