import { expect, test } from "vitest";
import type { AgentActivity } from "../contracts";
import {
  entriesOf,
  factsOf,
  gistOf,
  headOf,
  isWokenUnder,
  lineOf,
  nameById,
  nameOf,
  piecesOf,
  spansOf,
  standing,
  storedOf,
  sumOf,
  timeOf,
  wokenOf,
} from "./delegation";
import { type Message, type Part, type ToolCall, toolCall } from "./messages";

const step = { type: "step-start" } as Part;
const text = (words: string) => ({ type: "text", text: words, state: "done" }) as Part;
const tool = (id: string, name: string, state = "output-available") =>
  ({ type: `tool-${name}`, toolCallId: id, state, input: { prompt: `Task of ${id}` }, output: `Result of ${id}` }) as unknown as Part;
const activity = (id: string, data: AgentActivity) => ({ type: "data-agentActivity", id, data }) as Part;
const message = (...parts: Part[]) => ({ id: "m", role: "assistant", parts }) as Message;
const shown = (part: Part) => part.type === "text" || toolCall(part) !== null;

function call(state: string, rest: Partial<ToolCall> = {}): ToolCall {
  return { id: "a", name: "agent-researcher", state, input: {}, output: undefined, error: null, durationMs: null, ...rest };
}

test("work that a hook kept from being handed on is refused, which is no failure, and its reason is seen", () => {
  const refused = call("output-error", { error: "The hook “Guard” refused this: Not today." });
  const failed = call("output-error", { error: "The hook “Guard” is quoted by a specialist.", durationMs: 3 });

  expect(standing(refused, null, "completed")).toEqual({ state: "stopped", word: "Refused" });
  expect(lineOf(standing(refused, null, "completed"), refused, null).text).toBe("The hook “Guard” refused this: Not today.");
  expect(standing(failed, null, "completed").word).toBe("Failed");
});

test("specialists that follow each other share a card, and what is only stored moves no part to another place", () => {
  const streamed = message(step, tool("a", "agent-researcher"), tool("b", "agent-reviewer"), step, text("So it is."));
  const kept = message(
    step,
    tool("a", "agent-researcher"),
    tool("b", "agent-reviewer"),
    activity("a", { steps: 2 }),
    activity("b", { steps: 3 }),
    step,
    text("So it is."),
  );

  const pieces = piecesOf(kept, shown);

  expect(pieces.map((piece) => ("given" in piece ? piece.given.map((given) => given.stored?.steps) : piece.part.type))).toEqual([[2, 3], "text"]);
  expect(piecesOf(streamed, shown).map((piece) => piece.index)).toEqual(pieces.map((piece) => piece.index));
});

test("who was woken by a letter stands under the call that led to it, and under no other", () => {
  const woken = { agentId: "reviewer", askedBy: "researcher", state: "running" } as AgentActivity;
  const stored = storedOf(message(step, tool("a", "agent-researcher"), activity("a", {}), activity("a/b", woken)));

  expect([...stored.keys()]).toEqual(["a", "a/b"]);
  expect(isWokenUnder("a/b", woken, ["a"])).toBe(true);
  expect(isWokenUnder("c", woken, ["c"])).toBe(true);
  expect(isWokenUnder("ab/c", woken, ["a"])).toBe(false);
  expect(isWokenUnder("a", { agentId: "researcher" }, ["a"])).toBe(false);
});

test("who was woken stands as its own end says, and what it wrote last is its answer", () => {
  const told = (state: AgentActivity["state"], entries = {}) =>
    ({ agentId: "reviewer", agentName: "Reviewer", askedBy: "researcher", task: "Is it right?", state, entries }) as AgentActivity;
  const words = { "1": { kind: "text", step: 1, text: "I look." }, "2": { kind: "text", step: 2, text: "It is " }, "3": { kind: "text", step: 2, text: "right." } };
  const seen = (data: AgentActivity) => {
    const { call } = wokenOf("a/b", data, null);
    const stands = standing(call, data, null);
    return [nameOf(call, data), stands.word, lineOf(stands, call, data).text];
  };

  expect(seen(told("running"))).toEqual(["Reviewer", "Works", "Is it right?"]);
  expect(seen(told("completed", words))).toEqual(["Reviewer", "Done", "It is right."]);
  expect(seen(told("failed", words))).toEqual(["Reviewer", "Failed", "It could not answer."]);
  expect(seen(told("stopped"))).toEqual(["Reviewer", "Stopped", "Is it right?"]);
  expect(headOf([wokenOf("a/b", told("running"), null)])).toEqual({ title: "1 agent", manner: "woken by letters" });
  expect(["build-maintainer", "orchistrator"].map(nameById)).toEqual(["Build maintainer", "the orchestrator"]);
});

test("a card says whether its specialists work at once or one after the other", () => {
  const manner = (...parts: Part[]) => {
    const [piece] = piecesOf(message(...parts), shown);
    return piece && "given" in piece ? headOf(piece.given) : null;
  };

  expect(manner(step, tool("a", "agent-x"), tool("b", "agent-y"))).toEqual({ title: "2 specialists", manner: "at once" });
  expect(manner(step, tool("a", "agent-x"), step, tool("b", "agent-y"))?.manner).toBe("one after the other");
  expect(manner(step, tool("a", "agent-x"), tool("b", "agent-y"), step, tool("c", "agent-x"))?.manner).toBe("");
  expect(manner(step, tool("a", "agent-x"))).toEqual({ title: "1 specialist", manner: "" });
  expect(manner(step, tool("a", "agent-x"), tool("r", "read"), tool("b", "agent-y"))?.title).toBe("1 specialist");
});

test("time that passed at once counts once, and tokens are summed", () => {
  const parts = [step, tool("a", "agent-x"), tool("b", "agent-y"), step, tool("c", "agent-z")];
  const [piece] = piecesOf(message(...parts), shown);
  const usage = { inputTokens: 100, outputTokens: 10, cachedTokens: 0, reasoningTokens: 0, estimated: false };
  const told = [{ usage, durationMs: 4_000 }, { usage, durationMs: 3_000 }, { durationMs: 2_000 }];

  expect(piece && "given" in piece && sumOf(piece.given, told)).toBe("220 tokens · 6.0 s");
});

test("all lanes of a card stand on one clock, whose end is now while one works", () => {
  const given = { call: call("input-available"), step: 1, stored: null };
  const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString();
  const done = timeOf(given, { state: "completed", startedAt: at(0), durationMs: 5_000 }, null);
  const works = timeOf(given, { state: "running", startedAt: at(5) }, null);
  const now = Date.parse(at(20));

  expect(spansOf([done, works, timeOf(given, null, null)], now)).toEqual([{ from: 0, length: 25 }, { from: 25, length: 75 }, null]);
  expect(spansOf([done, works], Date.parse(at(-60)))).toEqual([{ from: 0, length: 100 }, { from: 100, length: 0 }]);
  const stopped = timeOf(given, { state: "stopped", startedAt: at(0) }, "completed");
  expect(spansOf([stopped], now)).toEqual([{ from: 0, length: 0 }]);
  expect(spansOf([null], now)).toEqual([null]);
});

test("a lane that works says its step and for how long", () => {
  const startedAt = new Date(1_000).toISOString();

  expect(factsOf({ steps: 2, maxSteps: 24, startedAt }, true, 13_400)).toBe("step 2 of 24 · 12 s");
  expect(factsOf({ steps: 0, maxSteps: 24, startedAt }, true, 500)).toBe("step 1 of 24");
  expect(factsOf({ steps: 2, maxSteps: 24, startedAt, durationMs: 4_100 }, false, 99_000)).toBe("2 steps · 4.1 s");
  expect(factsOf(null, true, 0)).toBe("");
});

test("the state of a lane is a word, and a turn that ended leaves nothing running", () => {
  expect(standing(call("input-streaming"), null, null).word).toBe("Gets its task");
  expect(standing(call("input-available"), null, null).word).toBe("Starts");
  expect(standing(call("input-available"), { state: "running" }, null)).toEqual({ state: "running", word: "Works" });
  expect(standing(call("input-available"), { state: "running" }, "completed")).toEqual({ state: "stopped", word: "Stopped" });
  expect(standing(call("output-error"), { state: "failed" }, null)).toEqual({ state: "failed", word: "Failed" });
  expect(standing(call("output-error"), { state: "stopped" }, "completed")).toEqual({ state: "stopped", word: "Stopped" });
  expect(standing(call("output-error"), null, null).word).toBe("Failed");
  expect(standing(call("output-denied"), null, null).word).toBe("Denied");
  expect(standing(call("output-available"), { state: "completed" }, "completed")).toEqual({ state: "completed", word: "Done" });
});

test("who was stopped before it began did not fail, and who failed before the stop was not stopped", () => {
  const cutShort = call("output-error", { error: "Stopped before it finished." });
  const stopped = { state: "stopped", word: "Stopped" };

  expect(standing(cutShort, null, "stopped")).toEqual(stopped);
  expect(lineOf(standing(cutShort, null, "stopped"), { ...cutShort, input: { prompt: "Look." } }, null).text).toBe("Look.");
  expect(standing(cutShort, null, "failed").word).toBe("Failed");
  expect(standing({ ...cutShort, durationMs: 2 }, null, "stopped").word).toBe("Failed");
  expect(standing(cutShort, { state: "failed" }, "stopped").word).toBe("Failed");
});

test("pieces of one text are read as one, in the order of their numbers", () => {
  const entries = entriesOf({
    entries: {
      10: { step: 2, kind: "text", text: "End." },
      1: { step: 1, kind: "text", text: "I look " },
      2: { step: 1, kind: "text", text: "around." },
      3: { step: 1, kind: "call", tool: "read", input: "{}", state: "done" },
    },
  });

  expect(entries.map((entry) => entry.text ?? entry.tool)).toEqual(["I look around.", "read", "End."]);
});

test("arguments are shown without their JSON, also when they were cut", () => {
  expect(gistOf('{"path": "README.md", "limit": 20, "all": true}')).toBe("README.md · 20 · true");
  expect(gistOf('{"query":"say \\"hi\\" twice"}')).toBe('say "hi" twice');
  expect(gistOf('{"command":"pytest -x\\n--count 3", "cwd":"tests/un…')).toBe("pytest -x --count 3 · tests/un…");
  expect(gistOf("{}")).toBe("");
});

test("the line of a lane says what goes on, then how it ended", () => {
  const works = standing(call("input-available"), { state: "running" }, null);
  const line = (told: AgentActivity) => {
    const { word, text } = lineOf(works, call("input-available", { input: { prompt: "Find it." } }), told);
    return `${word}: ${text}`;
  };
  const grep = { step: 1, kind: "call", tool: "grep", input: '{"pattern":"lease"}' } as const;

  expect(line({ state: "running" })).toBe("Works: Find it.");
  expect(line({ entries: { 1: { ...grep, state: "running" } } })).toBe("Uses: grep lease");
  expect(line({ entries: { 1: { ...grep, state: "done" } } })).toBe("Thinks: after grep lease");
  expect(line({ entries: { 1: { step: 1, kind: "text", text: "First.\nThen the sw" } } })).toBe("Writes: Then the sw");
  const done = call("output-available", { output: "## Found it\nin sweep.py" });
  expect(lineOf(standing(done, null, "completed"), done, null)).toEqual({ word: "Done", text: "Found it", isTail: false });
  const failed = call("output-error", { error: "No result." });
  expect(lineOf(standing(failed, null, "completed"), failed, null)).toEqual({ word: "Failed", text: "No result.", isTail: false });
});

test("a specialist has its name; until it is told, that of its tool", () => {
  expect(nameOf(call("input-streaming"), null)).toBe("Researcher");
  expect(nameOf(call("input-streaming", { name: "agent-build-maintainer" }), null)).toBe("Build maintainer");
  expect(nameOf(call("input-available"), { agentName: "Scout" })).toBe("Scout");
});
