import { describe, expect, it } from "vitest";
import type { TaskSummary } from "../contracts";
import { BLANK, bodyOf, errors } from "./form";
import { byOf, endingOf, glyphOf, lineOf, plainly, stateWord, timeOf, until, whyOf } from "./words";

const NOW = Date.parse("2026-05-01T12:00:00Z");

function task(fields: Partial<TaskSummary>): TaskSummary {
  return { state: "queued", attemptCount: 1, lastErrorClass: null, lastError: null, interruptedAt: null, nextAttemptAt: null, excerpt: "", startedAt: null, endedAt: null, createdAt: "2026-05-01T11:00:00Z", ...fields } as TaskSummary;
}

describe("a task in words", () => {
  it("says a cause and what was said of it", () => {
    expect(whyOf({ lastErrorClass: "provider", lastError: "No header within 60 s." })).toBe("The model's server failed: No header within 60 s.");
    expect(whyOf({ lastErrorClass: "restart", lastError: null })).toBe("popagent was restarted.");
    expect(whyOf({ lastErrorClass: "unknown", lastError: "Boom" })).toBe("Boom");
  });

  it("reads the class in the runner's sentence, and leaves any other as it is", () => {
    expect(endingOf("Attempt 2 ended (runner-lost). Gone.")).toBe("Attempt 2 ended. The process that ran it was gone: Gone.");
    expect(endingOf("Attempt 2 ended (of-another-kind). Gone.")).toBe("Attempt 2 ended (of-another-kind). Gone.");
  });

  it("tells what waits for its first place from what is tried again", () => {
    expect(lineOf(task({ attemptCount: 0 }), NOW)).toBe("Waits for a place");
    const again = task({ lastErrorClass: "rate-limit", lastError: "Slow down.", nextAttemptAt: "2026-05-01T12:00:40Z" });
    expect(lineOf(again, NOW)).toBe("Tried again in 40 s. The model's server refused for a while: Slow down.");
  });

  it("calls what does not heed interrupted only while it runs", () => {
    const stuck = task({ state: "cancelling", interruptedAt: "2026-05-01T11:59:00Z" });
    expect([stateWord(stuck), glyphOf(stuck)]).toEqual(["Interrupted", "interrupted"]);
    expect(stateWord({ ...stuck, state: "cancelled" })).toBe("Cancelled");
  });

  it("shows the words of a result without its marks", () => {
    expect(plainly("## Links\n\nOf **188** pages, `two` have | a | b |\n|---|---|\n| 1 | 2 |")).toBe("Links Of 188 pages, two have a b 1 2");
    expect(plainly("- see [the page](https://example.com), 3 * 4 > 2")).toBe("see the page, 3 4 2");
  });

  it("shows when it is due, and how long it runs", () => {
    expect(until("2026-05-01T12:05:20Z", NOW)).toBe("in 5 min");
    expect(until("2026-05-01T11:00:00Z", NOW)).toBe("next");
    expect(timeOf(task({}), NOW)).toBe("1 h");
    expect(timeOf(task({ nextAttemptAt: "2026-05-01T12:00:40Z" }), NOW)).toBe("in 40 s");
    expect(timeOf(task({ state: "running", startedAt: "2026-05-01T11:58:00Z" }), NOW)).toBe("2 min");
  });
});

it("says who does a task, and where only if there is a choice", () => {
  const agents = [{ id: "orchistrator", name: "Chief" }, { id: "reviewer", name: "Reviewer" }];
  const places = [{ id: "w1", name: "calc" }, { id: "w2", name: "notes" }];
  expect(byOf({ agentId: null, workspaceId: "w1" }, agents, places.slice(0, 1))).toBe("Chief");
  expect(byOf({ agentId: "reviewer", workspaceId: "w2" }, agents, places)).toBe("Reviewer · notes");
  expect(byOf({ agentId: "gone", workspaceId: "w3" }, [], places)).toBe("gone · w3");
});

describe("a new task", () => {
  it("needs something to do, and numbers that are whole and within bounds", () => {
    expect(Object.keys(errors(BLANK))).toEqual(["prompt"]);
    expect(Object.keys(errors({ ...BLANK, prompt: "Go.", priority: "11", maxAttempts: "0" }))).toEqual(["priority", "maxAttempts"]);
    expect(errors({ ...BLANK, prompt: "x".repeat(100_001) }).prompt).toContain("100,001 characters");
    expect(errors({ ...BLANK, prompt: "Go.", priority: "-10" })).toEqual({});
  });

  it("sends what was left open as nothing", () => {
    expect(bodyOf({ ...BLANK, prompt: "Go.", agentId: "reviewer" })).toEqual({ prompt: "Go.", workspaceId: null, agentId: "reviewer", model: null, priority: 0, maxAttempts: 3 });
  });
});
