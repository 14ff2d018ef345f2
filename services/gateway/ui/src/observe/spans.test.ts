import { describe, expect, test } from "vitest";
import type { SpanView } from "../contracts";
import { pasted } from "./queries";
import { factsOf, kindOf, stateOfSpan, stateOfTrace, titleOf } from "./spans";

function span(name: string, kind = "internal", attributes: Record<string, unknown> = {}): SpanView {
  return {
    spanId: "s",
    parentId: null,
    name,
    service: "chat",
    kind,
    startedAt: "2026-11-30T12:00:00Z",
    durationMs: 1,
    status: "ok",
    statusText: "",
    attributes,
  };
}

describe("a state says how it ended", () => {
  test.each([
    ["ok", undefined, "completed"],
    ["ok", "stopped", "stopped"],
    ["error", "failed", "failed"],
    ["error", "interrupted", "interrupted"],
    ["running", undefined, "running"],
    ["ok", "something new", "completed"],
  ] as const)("a turn's span: %s, %s", (status, told, state) => {
    const attributes = told ? { "popagent.turn.state": told } : {};

    expect(stateOfSpan({ ...span("chat.turn", "internal", attributes), status })).toBe(state);
  });

  test("what was stopped with its turn did not fail", () => {
    const call = span("chat model", "client", { "error.type": "stopped" });
    const run = span("agent.run", "internal", { "gen_ai.response.finish_reasons": ["stopped"] });

    const cut = span("chat model", "client", { cancelled: true });

    expect([call, run, cut].map(stateOfSpan)).toEqual(["stopped", "stopped", "stopped"]);
    expect(stateOfSpan({ ...call, status: "error" })).toBe("failed");
  });

  test("a trace is as its turn was, though spans of a dead process still count as running", () => {
    expect(stateOfTrace({ status: "running", turnState: "interrupted" })).toBe("interrupted");
    expect(stateOfTrace({ status: "ok", turnState: null })).toBe("completed");
  });
});

describe("a span has a kind and a title", () => {
  test.each([
    [span("POST /api/chat", "server"), "wire", "POST /api/chat"],
    [span("consume chat.evt.turns-ended", "consumer"), "wire", "consume chat.evt.turns-ended"],
    [span("chat.turn", "internal", { "popagent.attempt": 1 }), "agent", "turn"],
    [span("chat.turn", "internal", { "popagent.attempt": 2 }), "agent", "turn, attempt 2"],
    [span("agent.run", "internal", { "gen_ai.agent.name": "Orchestrator", "gen_ai.operation.name": "invoke_agent" }), "agent", "Orchestrator"],
    [span("agent.step", "internal", { "popagent.step": 3, "popagent.step.final": true }), "agent", "step 3, the last"],
    [span("chat qwen", "client", { "gen_ai.operation.name": "chat", "gen_ai.request.model": "qwen" }), "model", "qwen"],
    [span("execute_tool read", "internal", { "gen_ai.operation.name": "execute_tool" }), "tool", "read"],
    [span("select spans", "client", { "db.system": "postgresql" }), "store", "select spans"],
    [span("warm up"), "work", "warm up"],
  ])("%#", (given, kind, title) => {
    expect([kindOf(given), titleOf(given)]).toEqual([kind, title]);
  });
});

test("known attributes get words, unknown ones keep their name, objects are written out", () => {
  const { known, other } = factsOf(
    span("chat qwen", "client", {
      "gen_ai.request.model": "qwen",
      "gen_ai.response.model": "qwen",
      "gen_ai.response.time_to_first_chunk_ms": 24,
      "gen_ai.usage.cache_read.input_tokens": 0,
      "gen_ai.response.finish_reasons": ["stop"],
      nested: { a: 1 },
    }),
  );

  expect(known).toEqual([
    { label: "Model", value: "qwen" },
    { label: "Ended", value: "stop" },
    { label: "First token", value: "24 ms" },
  ]);
  expect(other).toEqual([{ label: "nested", value: '{"a":1}' }]);
});

test.each([
  ["", null],
  ["two words", null],
  ["D5E91C2AACFADBDC65CA8B0B3476B72B ", { trace: "d5e91c2aacfadbdc65ca8b0b3476b72b" }],
  ["http://127.0.0.1:8420/observe/traces/d5e91c2aacfadbdc65ca8b0b3476b72b?span=1", { trace: "d5e91c2aacfadbdc65ca8b0b3476b72b" }],
  ["01a22ebd-c4f3-75c2-b785-f68f51dc6d72", { id: "01a22ebd-c4f3-75c2-b785-f68f51dc6d72" }],
  ["http://127.0.0.1:8420/chat/weather#m-1", { id: "weather" }],
])("pasted: %j", (text, expected) => {
  expect(pasted(text)).toEqual(expected);
});
