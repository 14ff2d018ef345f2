import { expect, test } from "vitest";
import type { ActivityCall, ActivityRecord } from "../contracts";
import { doingOf } from "./growing";

const LEAD = "researcher";

function record(seq: number, fields: Partial<ActivityRecord>): ActivityRecord {
  return { kind: "text", agentId: LEAD, step: 1, text: "", finishReason: null, calls: [], seq, revision: seq, attempt: 1, at: "2026-05-01T10:00:00Z", ...fields };
}

const call: ActivityCall = { callId: "c", tool: "read", arguments: {}, result: null, error: null, status: "running" };

test("what is said so far, used, or asked is told while somebody works on a post", () => {
  const said = [record(1, { text: "I look" }), record(2, { text: " at it." })];
  const used = [...said, record(3, { kind: "step", calls: [call] })];

  expect(doingOf({ records: [] }, LEAD)).toEqual({ text: "", act: "" });
  expect(doingOf({ records: said }, LEAD)).toEqual({ text: "I look at it.", act: "" });
  expect(doingOf({ records: used }, LEAD).act).toBe("uses read");
  expect(doingOf({ records: [...used, record(4, { agentId: "reviewer", text: "Well." })] }, LEAD).act).toBe("asks reviewer");
  expect(doingOf({ records: [...said, record(5, { attempt: 2, step: 1, text: "Once more." })] }, LEAD).text).toBe("Once more.");
});
