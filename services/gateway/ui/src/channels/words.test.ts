import { describe, expect, it, test } from "vitest";
import type { ChannelMessage, ChannelRun } from "../contracts";
import { breaksOf, day, excerptOf, hasTask, runWords } from "./words";

const NOW = new Date(2026, 4, 4, 12);

function message(seq: number, at: Date, fields: Partial<ChannelMessage> = {}): ChannelMessage {
  return {
    id: `m${seq}`,
    channelId: "general",
    seq,
    revision: seq,
    threadId: null,
    authorKind: "agent",
    authorId: "researcher",
    authorName: "Researcher",
    body: "**Done.**",
    mentions: [],
    workspaceId: null,
    run: null,
    taskId: null,
    editedAt: null,
    deletedAt: null,
    createdAt: at.toISOString(),
    ...fields,
  };
}

test("a day is the one of this browser's clock, with its year when that is not plain", () => {
  expect(day(new Date(2026, 4, 4, 0, 1).toISOString(), NOW)).toBe("Today");
  expect(day(new Date(2026, 4, 3, 23, 59).toISOString(), NOW)).toBe("Yesterday");
  expect(day(new Date(2026, 4, 2).toISOString(), NOW)).toContain("Saturday");
  expect(day(new Date(2025, 4, 2).toISOString(), NOW)).toContain("2025");
});

describe("what stands between messages", () => {
  const items = [
    message(1, new Date(2026, 4, 3, 10)),
    message(2, new Date(2026, 4, 3, 11), { authorKind: "user" }),
    message(3, new Date(2026, 4, 3, 12), { deletedAt: "2026-05-03T13:00:00Z" }),
    message(4, new Date(2026, 4, 3, 13)),
    message(5, new Date(2026, 4, 4, 9)),
  ];

  it("is each day once", () => {
    expect([...breaksOf(items, null, NOW)].map(([id, { day: of }]) => [id, of])).toEqual([
      ["m1", "Yesterday"],
      ["m5", "Today"],
    ]);
  });

  it("is where the first message of another begins that was not read", () => {
    const firstNew = (after: number, upTo: number) => [...breaksOf(items, { after, upTo }, NOW)].filter(([, { isFirstNew }]) => isFirstNew).map(([id]) => id);

    expect(firstNew(1, 5)).toEqual(["m4"]);
    expect(firstNew(4, 5)).toEqual(["m5"]);
    // What came while one looked is not new.
    expect(firstNew(4, 4)).toEqual([]);
  });
});

test("what a post has started is told with who does it, and why nothing came of it", () => {
  const run = (state: ChannelRun["state"], note = ""): ChannelRun => ({ taskId: "t", agentId: null, state, note });

  expect(runWords(run("running"), "Researcher")).toBe("Researcher works on it");
  expect(runWords(run("failed", "There is no such agent."), "Researcher")).toBe("Nothing came of it: There is no such agent.");
  expect([hasTask(run("failed", "why")), hasTask(run("failed")), hasTask(run("waiting")), hasTask(run("completed"))]).toEqual([false, true, false, true]);
});

test("a line of a message has its words and none of its marks", () => {
  expect(excerptOf({ body: "## Found\n\n**One** [link](/tasks/t).", deletedAt: null })).toBe("Found One link.");
  expect(excerptOf({ body: "a".repeat(100), deletedAt: null })).toHaveLength(80);
  expect(excerptOf({ body: "", deletedAt: "2026-05-03T13:00:00Z" })).toBe("a deleted message");
});
