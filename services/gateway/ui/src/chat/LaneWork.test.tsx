// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, test } from "vitest";
import type { AgentActivity } from "../contracts";
import { LaneWork } from "./LaneWork";

const REASON = "The hook “Docs only” refused this: Only files below docs/ may be changed.";

test("of what a specialist was refused the lane says that and why, and of what failed that it did", () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const used = { step: 1, kind: "call", state: "failed", input: '{"path":"notes.md"}' };
  const entries = { "1": { ...used, tool: "write", refusal: REASON }, "2": { ...used, tool: "read" } };
  const activity = { agentId: "reviewer", task: "Look.", state: "running", entries } as AgentActivity;
  const call = { id: "a", name: "agent-reviewer", state: "input-available", input: {}, output: undefined, error: null, durationMs: null };
  const place = document.createElement("div");
  const root = createRoot(place);

  act(() => root.render(<LaneWork given={{ call, step: 1, stored: null }} activity={activity} name="Reviewer" stands={{ state: "running", word: "Works" }} />));

  const [refused, failed] = [...place.querySelectorAll("li")];
  expect(refused?.textContent).toContain("refused");
  expect(refused?.querySelector(".reason")?.textContent).toBe(REASON);
  expect(refused?.querySelector(".is-fail")).toBeNull();
  expect(failed?.textContent).toContain("failed");
  expect(failed?.querySelector(".reason")).toBeNull();
  act(() => root.unmount());
});
