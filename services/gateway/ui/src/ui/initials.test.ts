import { expect, test } from "vitest";
import { initials, initialsApart } from "./initials";

test.each([
  ["Orchestrator", "Or"],
  ["Researcher", "Rs"],
  ["Reviewer", "Rv"],
  ["Implementer", "Im"],
  ["Build maintainer", "Bm"],
  ["Build release manager", "Br"],
  ["  Ada  ", "Ad"],
  ["Aoi", "Ao"],
  ["å", "Å"],
  ["漢字", "漢字"],
  ["😀x", "😀x"],
  ["", ""],
])("%s is shown as %s", (name, letters) => {
  expect(initials(name)).toBe(letters);
});

test("of several names no two have the same letters, and the first keeps its own", () => {
  expect(initialsApart(["Implementer", "Ilse Marten", "Im", "Ada"])).toEqual(["Im", "Il", "Im", "Ad"]);
});
