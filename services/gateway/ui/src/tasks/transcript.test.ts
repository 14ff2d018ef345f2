import { describe, expect, it } from "vitest";
import type { ActivityCall, ActivityRecord } from "../contracts";
import { type Transcript, attemptsOf, goesOn, newest, withNewer, withOlder, withoutEcho, withoutEnd, withoutOutput } from "./transcript";

function record(seq: number, fields: Partial<ActivityRecord> = {}): ActivityRecord {
  return { kind: "text", agentId: "lead", step: 1, text: "", finishReason: null, calls: [], seq, revision: seq, attempt: 1, at: "2026-05-01T10:00:00Z", ...fields };
}

function call(callId: string, fields: Partial<ActivityCall> = {}): ActivityCall {
  return { callId, tool: "read", arguments: { path: "a.md" }, result: null, error: null, status: "running", ...fields };
}

function told(records: ActivityRecord[]): string[] {
  return attemptsOf(records).flatMap((work) =>
    work.stretches.flatMap(({ agentId, items }) =>
      items.map((item) => `${work.attempt} ${agentId} ${item.kind === "call" ? `${item.call.tool} ${item.call.status}` : item.text}`),
    ),
  );
}

describe("a transcript", () => {
  it("tells a step once, although its end repeats it, and each call with its answer", () => {
    const done = call("c1", { status: "completed", result: "42" });
    const work = attemptsOf([
      record(1, { kind: "step-start" }),
      record(2, { text: "I look." }),
      record(3, { kind: "tool-call", calls: [call("c1")] }),
      record(4, { kind: "tool-call", calls: [{ ...done, arguments: null }] }),
      record(5, { kind: "step", text: "I look.", calls: [done] }),
      record(6, { kind: "step-start", step: 2 }),
      record(7, { kind: "step", step: 2, text: "Done." }),
    ])[0];

    expect(work?.steps).toBe(2);
    expect(work?.calls).toBe(1);
    expect(work?.stretches).toHaveLength(1);
    const items = work?.stretches[0]?.items ?? [];
    expect(items.map((item) => (item.kind === "call" ? item.call.result : item.text))).toEqual(["I look.", "42", "Done."]);
    expect(items[1]?.kind === "call" && items[1].call.arguments).toEqual({ path: "a.md" });
  });

  it("joins a text that was too long for one record", () => {
    expect(told([record(1, { text: "one " }), record(2, { text: "two" })])).toEqual(["1 lead one two"]);
  });

  it("keeps attempts, specialists and the runner's own sentences apart", () => {
    const records = [
      record(1, { text: "I ask." }),
      record(2, { kind: "status", agentId: "reviewer", text: "Works on: the diff" }),
      record(3, { agentId: "reviewer", text: "It is right." }),
      record(4, { kind: "status", agentId: null, step: 0, text: "Attempt 1 ended (provider)." }),
      record(5, { attempt: 2, text: "Again." }),
    ];

    expect(told(records)).toEqual([
      "1 lead I ask.",
      "1 reviewer Works on: the diff",
      "1 reviewer It is right.",
      "1 null Attempt 1 ended (provider).",
      "2 lead Again.",
    ]);
  });

  it("tells what several do at the same time of each by itself", () => {
    const at = (seq: number, agentId: string, text: string) => record(seq, { agentId, text });
    const records = [
      record(1, { kind: "step-start" }),
      at(2, "lead", "I ask two."),
      at(3, "researcher", "I read"),
      at(4, "reviewer", "I add"),
      at(5, "researcher", " on."),
      record(6, { step: 2, text: "Both are done." }),
      at(7, "reviewer", "Once more."),
    ];

    expect(told(records)).toEqual(["1 lead I ask two.", "1 researcher I read on.", "1 reviewer I add", "1 lead Both are done.", "1 reviewer Once more."]);
  });

  it("puts what is new over what is known: a record that grew stays in its place", () => {
    const known: Transcript = { records: [record(1, { text: "a", revision: 1 }), record(2, { revision: 2 })], previousCursor: 1, revision: 2 };
    const page = { taskId: "t", records: [record(1, { text: "ab", revision: 3 }), record(3, { revision: 4 })], previousCursor: null, revision: 4 };

    const after = withNewer(known, page);
    expect(after.records.map(({ seq, text }) => `${seq}${text}`)).toEqual(["1ab", "2", "3"]);
    expect([after.previousCursor, after.revision]).toEqual([1, 4]);
    expect(withNewer(after, { ...page, records: [record(1, { text: "old", revision: 1 })] }).records[0]?.text).toBe("ab");
    // What is told behind what is known has a gap before it, and is read instead.
    expect([goesOn(after, 3), goesOn(after, 4), goesOn(after, 5)]).toEqual([true, true, false]);
  });

  it("takes older records in front and never twice", () => {
    const known: Transcript = { records: [record(5)], previousCursor: 5, revision: 9 };

    const after = withOlder(known, { taskId: "t", records: [record(4), record(5)], previousCursor: 4, revision: 3 });
    expect(after.records.map(({ seq }) => seq)).toEqual([4, 5]);
    expect([after.previousCursor, after.revision]).toEqual([4, 9]);
  });

  it("leaves out the text that the result says again, and nothing else", () => {
    const work = attemptsOf([record(1, { text: "First." }), record(2, { step: 2, text: "The answer." })])[0];
    if (!work) throw new Error("there is one");

    expect(withoutOutput(work, "The answer.\n").stretches[0]?.items).toHaveLength(1);
    expect(withoutOutput(work, "Something else.")).toBe(work);
    expect(withoutOutput(work, "")).toBe(work);
  });

  it("leaves out how it ended, where that is said below", () => {
    const end = record(3, { kind: "status", agentId: null, step: 0, text: "Attempt 1 ended (validation). Too large." });
    const work = attemptsOf([record(1, { text: "I begin." }), record(2, { step: 2, text: "Too large." }), end])[0];
    if (!work) throw new Error("there is one");

    const items = (error: string) => withoutEnd(work, error).stretches.flatMap((each) => each.items.map((item) => (item.kind === "call" ? "" : item.text)));
    expect(items("Too large.")).toEqual(["I begin."]);
    expect(items("Something else.")).toEqual(["I begin.", "Too large."]);
  });

  it("leaves to the runner what it says again of how an attempt ended", () => {
    const end = record(2, { kind: "status", agentId: null, step: 0, text: "Attempt 1 ended (provider). Away." });
    const work = (text: string) => attemptsOf([record(1, { text }), end])[0];
    const count = (text: string) => withoutEcho(work(text) ?? { attempt: 1, at: "", stretches: [], steps: 0, calls: 0 }).stretches.length;

    expect([count("Away."), count("I looked.")]).toEqual([1, 2]);
  });

  it("shows the newest and says how many come before", () => {
    const work = attemptsOf(Array.from({ length: 30 }, (_, index) => record(index + 1, { step: index, text: `${index}` })))[0];
    if (!work) throw new Error("there is one");

    const { stretches, before } = newest(work, 10);
    expect(before).toBe(20);
    expect(stretches.flatMap(({ items }) => items)).toHaveLength(10);
    expect(newest(work, 29).before).toBe(0);
  });
});
