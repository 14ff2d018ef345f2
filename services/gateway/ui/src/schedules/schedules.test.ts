import { describe, expect, it } from "vitest";
import type { ScheduleView } from "../contracts";
import { BLANK, bodyOf, conflicts, errors, formOf, patchOf, put } from "./form";
import { away, otherZone, outcomeOf } from "./times";

const STORED: ScheduleView = {
  id: "s1",
  source: "user",
  workspaceId: "w1",
  name: "Digest",
  prompt: "Sum up.",
  agentId: null,
  model: "m1",
  cron: "0 9 * * *",
  cronWords: "At 09:00 every day",
  timezone: "UTC",
  maxAttempts: 3,
  catchUpMinutes: 10,
  skipIfRunning: true,
  enabled: true,
  nextRunAt: null,
  lastRun: null,
  revision: 4,
  createdAt: "2026-05-01T10:00:00Z",
  updatedAt: "2026-05-01T10:00:00Z",
};

describe("a schedule as it is typed", () => {
  it("sends only what changed, with the revision that was seen; nothing chosen is null", () => {
    const stored = formOf(STORED);
    const draft = put(put({}, "model", "", stored), "catchUpMinutes", "0", stored);

    expect(patchOf(draft, STORED)).toEqual({ revision: 4, model: null, catchUpMinutes: 0 });
    expect(patchOf({}, STORED)).toEqual({ revision: 4 });
  });

  it("disputes what somebody else stored meanwhile in the same field", () => {
    const draft = put({}, "cron", "@hourly", formOf(STORED));

    expect(conflicts(draft, formOf({ ...STORED, name: "Other" }))).toEqual([]);
    expect(conflicts(draft, formOf({ ...STORED, cron: "0 8 * * *" }))).toEqual(["cron"]);
  });

  it("names what is missing, and numbers out of bounds", () => {
    expect(Object.keys(errors(BLANK))).toEqual(["name", "prompt", "cron"]);
    expect(Object.keys(errors({ ...formOf(STORED), maxAttempts: "11", catchUpMinutes: "10081" }))).toEqual(["maxAttempts", "catchUpMinutes"]);
    expect(bodyOf(formOf(STORED)).model).toBe("m1");
  });
});

describe("the times of a schedule", () => {
  it("are so far away", () => {
    const now = Date.parse("2026-05-01T12:00:00Z");
    expect(away("2026-05-01T12:00:40Z", now)).toBe("in 40 s");
    expect(away("2026-05-01T14:05:00Z", now)).toBe("in 2 h 5 min");
    expect(away("2026-05-04T12:00:00Z", now)).toBe("in 3 days");
    expect(away("2026-05-01T11:00:00Z", now)).toBe("now");
  });

  it("are told with the zone only where it is another", () => {
    expect(otherZone("Europe/Berlin", "Europe/Berlin")).toBeNull();
    expect(otherZone("UTC", "Europe/Berlin")).toBe("Europe/Berlin");
  });

  it("say why there is no task", () => {
    const run = { scheduleId: "s1", plannedAt: "2026-05-01T12:00:00Z", asked: false, note: "", taskId: null } as const;
    expect(outcomeOf({ ...run, outcome: "refused", note: "There is no such agent." })).toEqual({ word: "Refused", why: "There is no such agent.", tone: "fail" });
    expect(outcomeOf({ ...run, outcome: "skipped" }).why).toContain("earlier time");
    expect(outcomeOf({ ...run, outcome: "started", taskId: "t" })).toEqual({ word: "Given", why: "", tone: "" });
  });
});
