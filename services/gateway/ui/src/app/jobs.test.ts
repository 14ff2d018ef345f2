import { expect, test } from "vitest";
import type { JobView } from "../contracts";
import { withJob } from "./jobs";

const job = (fields: Partial<JobView>): JobView => ({
  id: "chat_1",
  kind: "workspaces-clone",
  title: "Clone into house",
  about: "w1",
  state: "running",
  progress: 0.5,
  note: "",
  error: null,
  result: null,
  createdAt: "2026-01-02T03:04:05.000Z",
  updatedAt: "2026-01-02T03:04:05.500Z",
  ...fields,
});
const list = (...items: JobView[]) => ({ items, nextCursor: null });

test("a step replaces the one before in its place, and a new job comes first", () => {
  const other = job({ id: "chat_2" });
  const further = job({ progress: 0.7, updatedAt: "2026-01-02T03:04:06.000Z" });

  expect(withJob(list(other, job({})), further).items).toEqual([other, further]);
  expect(withJob(list(other), further).items).toEqual([further, other]);
});

test("what was told late does not take a job back", () => {
  const known = list(job({ state: "completed", progress: 1 }));

  expect(withJob(known, job({ updatedAt: "2026-01-02T03:04:05.100Z" }))).toBe(known);
  expect(withJob(known, job({}))).toBe(known);
});
