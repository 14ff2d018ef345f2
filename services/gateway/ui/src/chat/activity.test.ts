import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Activities, merged } from "./activity";

let frames: FrameRequestCallback[] = [];

beforeEach(() => {
  frames = [];
  vi.stubGlobal("requestAnimationFrame", (draw: FrameRequestCallback) => frames.push(draw));
});

afterEach(() => vi.unstubAllGlobals());

function draw() {
  for (const each of frames.splice(0)) each(0);
}

test("objects merge deeply and values replace, without a change of what was there", () => {
  const before = { state: "running", steps: 1, entries: { 1: { step: 1, kind: "call", tool: "read", state: "running" } } };

  const after = merged(before, { steps: 2, entries: { 1: { state: "done", durationMs: 4 }, 2: { step: 2, kind: "text", text: "So" } } });

  expect(after).toEqual({
    state: "running",
    steps: 2,
    entries: {
      1: { step: 1, kind: "call", tool: "read", state: "done", durationMs: 4 },
      2: { step: 2, kind: "text", text: "So" },
    },
  });
  expect(before.entries[1].state).toBe("running");
  expect(before.steps).toBe(1);
});

test("a name that would reach into the object itself is passed over", () => {
  const after = merged({}, JSON.parse('{"__proto__": {"bad": 1}, "constructor": 2, "steps": 3}')) as Record<string, unknown>;

  expect(after).toEqual({ steps: 3 });
  expect(after["bad"]).toBeUndefined();
});

test("deltas that are told again, as after a reload, change nothing", () => {
  const activities = new Activities();
  const deltas = [{ state: "running", steps: 0 }, { steps: 1 }, { entries: { 1: { step: 1, kind: "text", text: "Look" } } }];
  for (const delta of deltas) activities.take("m", "a", delta);
  const once = activities.of("m", "a");

  activities.take("m", "a", once);

  expect(activities.of("m", "a")).toEqual(once);
});

test("watchers are told once a frame, however much came", () => {
  const activities = new Activities();
  const told = vi.fn();
  activities.watch(told);

  for (let steps = 0; steps < 100; steps++) activities.take("m", steps % 2 ? "a" : "b", { steps });
  expect(told).not.toHaveBeenCalled();
  draw();

  expect(told).toHaveBeenCalledTimes(1);
  expect(activities.of("m", "a")?.steps).toBe(99);
  activities.take("m", "a", { steps: 100 });
  draw();
  expect(told).toHaveBeenCalledTimes(2);
});

test("a call of another answer has nothing to do with one of the same id", () => {
  const activities = new Activities();
  activities.take("first", "call_1", { state: "completed", steps: 4 });

  activities.take("second", "call_1", { state: "running" });

  expect(activities.of("second", "call_1")).toEqual({ state: "running" });
  expect(activities.of("first", "call_1")).toBeNull();
});
