import { describe, expect, test } from "vitest";
import type { SpanView } from "../contracts";
import { axisOf, barOf, pathTo, rowsOf, timeByKind, treeOf, walk } from "./waterfall";

const BEGAN = Date.parse("2026-11-30T12:00:00Z");

function span(id: string, parentId: string | null, from: number, took: number | null, more: Partial<SpanView> = {}): SpanView {
  return {
    spanId: id,
    parentId,
    name: "ask chat.cmd.turns-start",
    service: "gateway",
    kind: "client",
    startedAt: new Date(BEGAN + from).toISOString(),
    durationMs: took,
    status: took === null ? "running" : "ok",
    statusText: "",
    attributes: {},
    ...more,
  };
}

const ids = (spans: SpanView[], toggled: string[] = []) =>
  rowsOf(treeOf(spans), new Set(toggled)).map((row) => `${row.level} ${row.node.id}`);

describe("the tree", () => {
  test("children stand below their parent in order of their begin", () => {
    const spans = [span("late", "root", 50, 10), span("root", null, 0, 100), span("early", "root", 10, 10)];

    expect(ids(spans)).toEqual(["1 root", "2 early", "2 late"]);
  });

  test("a span whose parent is not stored stands at the top", () => {
    expect(ids([span("root", null, 0, 100), span("orphan", "gone", 20, 10)])).toEqual(["1 root", "1 orphan"]);
  });

  test("spans that name each other as parents are all shown", () => {
    expect(ids([span("a", "b", 0, 10), span("b", "a", 1, 10), span("c", "c", 2, 1)]).map((row) => row.slice(2)).sort()).toEqual(["a", "b", "c"]);
  });

  test("a chain of five thousand is walked without recursion", () => {
    const spans = Array.from({ length: 5_000 }, (_, index) => span(`s${index}`, index ? `s${index - 1}` : null, index, 10));

    expect(rowsOf(treeOf(spans), new Set())).toHaveLength(5_000);
  });

  test("a closed parent hides what is below it", () => {
    const spans = [span("root", null, 0, 100), span("child", "root", 10, 10), span("grandchild", "child", 11, 2)];

    expect(ids(spans, ["child"])).toEqual(["1 root", "2 child"]);
  });
});

describe("folding", () => {
  const many = [
    span("root", null, 0, 1_000),
    ...Array.from({ length: 10 }, (_, index) => span(`read${index}`, "root", index * 10, 5, { name: "execute_tool read" })),
    span("list", "root", 300, 7, { name: "execute_tool list" }),
    span("bad", "root", 400, 5, { name: "execute_tool read", status: "error" }),
  ];
  const rows = (toggled: string[] = []) => rowsOf(treeOf(many, 12), new Set(toggled));

  test("up to the bound every span has its row", () => {
    expect(rowsOf(treeOf(many, many.length), new Set())).toHaveLength(many.length);
  });

  test("above it equal siblings are one row with count and sum; what failed stays apart", () => {
    expect(rows().map((row) => row.node.title)).toEqual(["ask chat.cmd.turns-start", "read ×10", "list", "read"]);
    expect(rows()[1]?.node).toMatchObject({ count: 10, tookMs: 50, startMs: 0, endMs: 95 });
  });

  test("a fold opens to its spans", () => {
    const fold = rows()[1]?.node.id ?? "";

    expect(rows([fold])).toHaveLength(4 + 10);
    expect(pathTo(treeOf(many, 12), "read3")).toEqual([fold, "root"]);
  });

  test("steps are equal whatever their number", () => {
    const steps = Array.from({ length: 4 }, (_, index) =>
      span(`step${index}`, null, index, 1, { name: "agent.step", kind: "internal", attributes: { "popagent.step": index } }),
    );

    expect(rowsOf(treeOf(steps, 1), new Set()).map((row) => row.node.title)).toEqual(["step ×4"]);
  });
});

describe("the axis", () => {
  test.each([
    [112_000, false, ["0 s", "30 s", "60 s", "90 s"]],
    [1_184, false, ["0 s", "0.25 s", "0.5 s", "0.75 s", "1 s"]],
    [35, false, ["0 ms", "10 ms", "20 ms", "30 ms"]],
    [7_200_000, false, ["0 min", "30 min", "60 min", "90 min", "120 min"]],
    [0, false, ["0 ms", "0.2 ms", "0.4 ms", "0.6 ms", "0.8 ms", "1 ms"]],
  ])("%i ms has round places", (extent, running, labels) => {
    expect(axisOf(extent, running).ticks.map((tick) => tick.label)).toEqual(labels);
  });

  test("while a trace runs the axis ends at a round place beyond it and stays there for a while", () => {
    expect(axisOf(4_100, true).endMs).toBe(5_000);
    expect(axisOf(4_800, true).endMs).toBe(5_000);
  });

  test("a running bar reaches to now and never beyond the axis", () => {
    const tree = treeOf([span("root", null, 0, null), span("child", "root", 1_000, null)]);
    const child = tree.nodes.get("child");
    const axis = axisOf(4_100, true);

    expect(child && barOf(child, axis, 3_500)).toEqual({ left: 20, width: 50 });
    expect(child && barOf(child, axis, 99_000)).toEqual({ left: 20, width: 80 });
  });
});

test("every moment counts once, for the innermost span", () => {
  const tree = treeOf([
    span("http", null, 0, 100),
    span("ask", "http", 0, 10),
    // It outlives the span that asked for it, as a turn does.
    span("turn", "ask", 5, 90, { name: "chat.turn", kind: "internal" }),
    span("model", "turn", 20, 50, { attributes: { "gen_ai.operation.name": "chat" } }),
    span("tool", "turn", 60, 20, { name: "execute_tool read" }),
  ]);

  const times = timeByKind(tree, 0);

  expect(times.reduce((sum, each) => sum + each.tookMs, 0)).toBe(100);
  expect(Object.fromEntries(times.map(({ kind, tookMs }) => [kind, tookMs]))).toEqual({ model: 50, agent: 30, wire: 10, tool: 10 });
});

describe("walking", () => {
  const rows = (toggled: string[] = []) =>
    rowsOf(treeOf([span("root", null, 0, 9), span("a", "root", 1, 5), span("deep", "a", 2, 1), span("b", "root", 7, 1)]), new Set(toggled));

  test.each([
    ["root", "ArrowDown", { to: "a" }],
    ["root", "ArrowUp", null],
    ["b", "ArrowDown", null],
    ["b", "Home", { to: "root" }],
    ["root", "End", { to: "b" }],
    ["a", "ArrowRight", { to: "deep" }],
    ["deep", "ArrowRight", null],
    ["deep", "ArrowLeft", { to: "a" }],
    ["a", "ArrowLeft", { toggle: "a" }],
    ["gone", "ArrowDown", { to: "root" }],
  ])("from %s by %s", (at, key, expected) => {
    expect(walk(rows(), at, key)).toEqual(expected);
  });

  test("a closed parent is opened before it is entered", () => {
    expect(walk(rows(["a"]), "a", "ArrowRight")).toEqual({ toggle: "a" });
    expect(walk(rows(["a"]), "a", "ArrowLeft")).toEqual({ to: "root" });
  });
});
