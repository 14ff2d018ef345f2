import { type InfiniteData, QueryClient } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";
import type { TaskList, TaskSummary } from "../contracts";
import { NEEDS, dropTask, noteTask, of, tasksQuery, withTask } from "./lists";

function task(id: string, fields: Partial<TaskSummary> = {}): TaskSummary {
  return {
    id,
    title: `Task ${id}`,
    state: "queued",
    source: "user",
    workspaceId: "w1",
    workflow: false,
    agentId: null,
    model: null,
    sessionId: null,
    scheduleId: null,
    remediates: null,
    priority: 0,
    attemptCount: 0,
    maxAttempts: 3,
    nextAttemptAt: null,
    lastErrorClass: null,
    lastError: null,
    deadLetteredAt: null,
    interruptedAt: null,
    turnId: null,
    traceId: null,
    excerpt: "",
    version: 1,
    createdAt: `2026-05-01T10:00:0${id}Z`,
    startedAt: null,
    endedAt: null,
    ...fields,
  };
}

function list(cursor: string | null, ...pages: TaskSummary[][]): InfiniteData<TaskList> {
  return {
    pages: pages.map((items, index) => ({ items, nextCursor: index === pages.length - 1 ? cursor : "next" })),
    pageParams: pages.map(() => null),
  };
}

function ids(data: InfiniteData<TaskList>): string[] {
  return data.pages.flatMap((page) => page.items.map((each) => each.id));
}

const QUEUED = of(["queued"]);

describe("a list of tasks", () => {
  it("takes a new one where it belongs, newest first, over its pages", () => {
    const data = list(null, [task("9"), task("7")], [task("5"), task("3")]);

    expect(ids(withTask(data, QUEUED, task("8")))).toEqual(["9", "8", "7", "5", "3"]);
    expect(ids(withTask(data, QUEUED, task("4")))).toEqual(["9", "7", "5", "4", "3"]);
    expect(ids(withTask(data, QUEUED, task("1")))).toEqual(["9", "7", "5", "3", "1"]);
  });

  it("leaves to its next page what lies behind the last one that was loaded", () => {
    expect(ids(withTask(list("more", [task("9")]), QUEUED, task("1")))).toEqual(["9"]);
  });

  it("lets go of what has another state now, and never goes back to an older telling", () => {
    const data = list(null, [task("2", { version: 5 })]);

    expect(ids(withTask(data, QUEUED, task("2", { version: 6, state: "running" })))).toEqual([]);
    expect(withTask(data, QUEUED, task("2", { version: 4, state: "running" }))).toBe(data);
  });

  it("holds only what its filter names, in any case of letters", () => {
    const none = list(null, []);
    const filter = of(["queued"], { workspaceId: "w2", q: "LINKS" });

    expect(ids(withTask(none, filter, task("1", { title: "Check the links" })))).toEqual([]);
    expect(ids(withTask(none, filter, task("1", { title: "Check the links", workspaceId: "w2" })))).toEqual(["1"]);
  });

  it("is changed wherever it is shown, and what is deleted is in none", () => {
    const client = new QueryClient();
    client.setQueryData(tasksQuery(QUEUED).queryKey, list(null, [task("1")]));
    client.setQueryData(tasksQuery(of(NEEDS)).queryKey, list(null, []));

    noteTask(client, task("1", { state: "failed", version: 2 }));
    const needs = client.getQueryData(tasksQuery(of(NEEDS)).queryKey);
    expect(needs && ids(needs)).toEqual(["1"]);
    expect(ids(client.getQueryData(tasksQuery(QUEUED).queryKey) ?? list(null))).toEqual([]);

    client.setQueryData(["tasks", "one", "1"], task("1"));
    dropTask(client, "1");
    expect(client.getQueryData(["tasks", "one", "1"])).toBeNull();
    expect(ids(client.getQueryData(tasksQuery(of(NEEDS)).queryKey) ?? list(null))).toEqual([]);
  });
});
