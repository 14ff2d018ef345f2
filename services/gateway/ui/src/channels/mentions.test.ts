import { describe, expect, it, test } from "vitest";
import { begunAt, completed, meant, mentioned } from "./mentions";

const KNOWN = [
  { id: "orchistrator", name: "Orchestrator" },
  { id: "researcher", name: "Researcher" },
  { id: "writer", name: "Research writer" },
];

test.each([
  ["@researcher which file?", ["researcher"]],
  ["Ask @Research-Writer, then @RESEARCHER-", ["writer", "researcher"]],
  ["@orchestrator and @orchistrator", ["orchistrator"]],
  ["me@researcher.org, /@writer, @@writer", []],
  ["`@writer` and\n```\n@researcher\n```", []],
  ["```\n@researcher", []],
  ["@nobody", []],
])("%j names %j", (text, expected) => {
  expect(mentioned(text, KNOWN)).toEqual(expected);
});

describe("a name that is being typed", () => {
  it("begins with an @ at the caret, outside of words and code", () => {
    expect(begunAt("Hello @re", 9)).toEqual({ at: 6, typed: "re" });
    expect(begunAt("@", 1)).toEqual({ at: 0, typed: "" });
    expect(begunAt("Hello @re and more", 9)).toEqual({ at: 6, typed: "re" });
    expect(begunAt("Hello @re ", 10)).toBeNull();
    expect(begunAt("me@re", 5)).toBeNull();
    expect(begunAt("`@re", 4)).toEqual({ at: 1, typed: "re" });
    expect(begunAt("`@re`", 4)).toBeNull();
    expect(begunAt("```\n@re", 7)).toBeNull();
  });

  it("may mean those that are called so, first those that begin so", () => {
    const ids = (typed: string) => meant(typed, KNOWN).map(({ id }) => id);

    expect(ids("")).toEqual(["orchistrator", "researcher", "writer"]);
    expect(ids("w")).toEqual(["writer"]);
    expect(ids("RES")).toEqual(["researcher", "writer"]);
    expect(ids("strat")).toEqual(["orchistrator"]);
    expect(ids("researcher")).toEqual([]);
    expect(ids("nobody")).toEqual([]);
  });

  it("is made whole where it stands, with one blank behind it", () => {
    expect(completed("Hello @re", { at: 6, typed: "re" }, "researcher")).toEqual({ text: "Hello @researcher ", caret: 18 });
    expect(completed("@w, please", { at: 0, typed: "w" }, "writer").text).toBe("@writer , please");
    expect(completed("@w please", { at: 0, typed: "w" }, "writer").text).toBe("@writer please");
  });
});
