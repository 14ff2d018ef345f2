import type { SpanView } from "../contracts";
import type { State } from "../ui/StateGlyph";
import { type Kind, kindOf, sameness, stateOfSpan, titleOf } from "./spans";

/** A span, or siblings that are alike folded into one; times in milliseconds after the begin of the trace. */
export interface Node {
  id: string;
  title: string;
  kind: Kind;
  service: string;
  state: State;
  startMs: number;
  /** Null while it runs. */
  endMs: number | null;
  /** Of the span; of a fold, the sum of what it holds. */
  tookMs: number | null;
  /** Null for a fold. */
  span: SpanView | null;
  /** How many spans a fold holds. */
  count: number;
  children: Node[];
}

/** A node as it is drawn. */
export interface Row {
  node: Node;
  level: number;
  /** Its place among its siblings, from 1. */
  position: number;
  siblings: number;
  parent: string | null;
  open: boolean;
}

const FOLDS_ABOVE = 500;
const LEAST_FOLDED = 3;

export interface Tree {
  roots: Node[];
  /** Of everything that has ended or begun. */
  extentMs: number;
  beganAt: number;
  nodes: Map<string, Node>;
  parents: Map<string, string>;
}

/** Make the tree of a trace: what names a parent that is not here, or lies in a circle, stands at the top. */
export function treeOf(spans: readonly SpanView[], foldAbove = FOLDS_ABOVE): Tree {
  const starts = spans.map((span) => Date.parse(span.startedAt));
  const beganAt = starts.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
  const nodes = new Map<string, Node>();
  let extentMs = 0;
  spans.forEach((span, index) => {
    const startMs = (starts[index] ?? beganAt) - beganAt;
    const endMs = span.durationMs === null ? null : startMs + span.durationMs;
    extentMs = Math.max(extentMs, endMs ?? startMs);
    nodes.set(span.spanId, {
      id: span.spanId,
      title: titleOf(span),
      kind: kindOf(span),
      service: span.service,
      state: stateOfSpan(span),
      startMs,
      endMs,
      tookMs: span.durationMs,
      span,
      count: 1,
      children: [],
    });
  });
  const parents = new Map<string, string>();
  for (const span of spans) {
    if (span.parentId !== null && nodes.has(span.parentId)) parents.set(span.spanId, span.parentId);
  }
  openCircles(parents);
  const roots: Node[] = [];
  for (const node of nodes.values()) {
    const parent = parents.get(node.id);
    if (parent === undefined) roots.push(node);
    else nodes.get(parent)?.children.push(node);
  }
  const inOrder = (a: Node, b: Node) => a.startMs - b.startMs;
  roots.sort(inOrder);
  for (const node of nodes.values()) node.children.sort(inOrder);
  const tree = { roots, extentMs, beganAt: Number.isFinite(beganAt) ? beganAt : 0, nodes, parents };
  if (spans.length > foldAbove) fold(tree);
  return tree;
}

/** Take away one parent of every circle, so that each node has a root above it. */
function openCircles(parents: Map<string, string>): void {
  const lookedAt = new Set<string>();
  for (const start of [...parents.keys()]) {
    const path = new Set<string>();
    let at: string | undefined = start;
    while (at !== undefined && !lookedAt.has(at)) {
      lookedAt.add(at);
      path.add(at);
      const above: string | undefined = parents.get(at);
      if (above !== undefined && path.has(above)) parents.delete(at);
      at = parents.get(at);
    }
  }
}

function fold(tree: Tree): void {
  tree.roots = folded(tree.roots, tree, null);
  for (const node of [...tree.nodes.values()]) {
    if (node.span) node.children = folded(node.children, tree, node.id);
  }
}

function folded(siblings: Node[], tree: Tree, parent: string | null): Node[] {
  const alike = new Map<string, Node[]>();
  for (const node of siblings) {
    if (!node.span) continue;
    const key = sameness(node.span);
    const group = alike.get(key);
    if (group) group.push(node);
    else alike.set(key, [node]);
  }
  const shown: Node[] = [];
  for (const [key, group] of alike) {
    const first = group[0];
    if (!first?.span || group.length < LEAST_FOLDED) {
      shown.push(...group);
      continue;
    }
    const ends = group.map((node) => node.endMs);
    const title = first.span.name === "agent.step" ? "step" : first.title;
    const node: Node = {
      ...first,
      id: `fold ${parent ?? ""} ${key}`,
      title: `${title} ×${group.length}`,
      endMs: ends.reduce<number | null>((most, end) => (most === null || end === null ? null : Math.max(most, end)), 0),
      tookMs: group.reduce((sum, each) => sum + (each.tookMs ?? 0), 0),
      span: null,
      count: group.length,
      children: group,
    };
    for (const each of group) tree.parents.set(each.id, node.id);
    if (parent !== null) tree.parents.set(node.id, parent);
    tree.nodes.set(node.id, node);
    shown.push(node);
  }
  return shown.sort((a, b) => a.startMs - b.startMs);
}

/** Whether a node is open as long as nobody said otherwise: everything is, only folds are not. */
export function opensByItself(node: Node): boolean {
  return node.span !== null;
}

/** The visible rows in order. `toggled` holds the ids of those that a person opened or closed. */
export function rowsOf(tree: Tree, toggled: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  // A stack instead of recursion: a chain of calls may be thousands deep.
  const waiting: Row[] = [];
  const push = (siblings: Node[], level: number, parent: string | null) => {
    for (let index = siblings.length - 1; index >= 0; index -= 1) {
      const node = siblings[index];
      if (!node) continue;
      const open = node.children.length > 0 && opensByItself(node) !== toggled.has(node.id);
      waiting.push({ node, level, position: index + 1, siblings: siblings.length, parent, open });
    }
  };
  push(tree.roots, 1, null);
  for (let row = waiting.pop(); row; row = waiting.pop()) {
    rows.push(row);
    if (row.open) push(row.node.children, row.level + 1, row.node.id);
  }
  return rows;
}

/** What must be open so that a span can be seen. */
export function pathTo(tree: Tree, id: string): string[] {
  const path: string[] = [];
  for (let at = tree.parents.get(id); at !== undefined; at = tree.parents.get(at)) path.push(at);
  return path;
}

export interface Axis {
  /** Where the axis ends: beyond the last bar while the trace runs, so that growing bars do not move the others. */
  endMs: number;
  ticks: { atMs: number; label: string }[];
}

const STEPS = [1, 2, 2.5, 5, 10];
// Beyond ten seconds people count in parts of a minute.
const STEPS_OF_MINUTES = [10_000, 15_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000];
const MOST_TICKS = 5;

/** Round places of the time axis, at most six, from 0. */
export function axisOf(extentMs: number, running: boolean): Axis {
  const extent = Math.max(extentMs, 1);
  const least = extent / MOST_TICKS;
  const step = niceStep(least);
  const endMs = running ? Math.ceil((extent * 1.02) / step) * step : extent;
  const ticks: Axis["ticks"] = [];
  for (let atMs = 0; atMs <= endMs + step / 1e6; atMs += step) ticks.push({ atMs, label: tickLabel(atMs, step) });
  return { endMs, ticks };
}

function niceStep(least: number): number {
  if (least > 5_000) return STEPS_OF_MINUTES.find((each) => each >= least) ?? Math.ceil(least / 86_400_000) * 86_400_000;
  const power = 10 ** Math.floor(Math.log10(least));
  return (STEPS.find((each) => each * power >= least * (1 - 1e-9)) ?? 10) * power;
}

function tickLabel(atMs: number, stepMs: number): string {
  const trim = (value: number) => String(Number(value.toFixed(3)));
  if (stepMs >= 60_000) return stepMs % 3_600_000 === 0 ? `${trim(atMs / 3_600_000)} h` : `${trim(atMs / 60_000)} min`;
  return stepMs >= 200 ? `${trim(atMs / 1_000)} s` : `${trim(atMs)} ms`;
}

/** Place of a bar on the axis in percent; what runs reaches to now. */
export function barOf(node: Node, axis: Axis, nowMs: number): { left: number; width: number } {
  const end = node.endMs ?? Math.max(nowMs, node.startMs);
  const left = clamp((node.startMs / axis.endMs) * 100);
  return { left, width: clamp(((end - node.startMs) / axis.endMs) * 100, 0, 100 - left) };
}

function clamp(value: number, least = 0, most = 100): number {
  return Math.min(most, Math.max(least, value));
}

/** Where an arrow leads: the next row, or what is opened or closed. */
export type Walk = { to: string } | { toggle: string } | null;

export function walk(rows: readonly Row[], at: string, key: string): Walk {
  const index = rows.findIndex((row) => row.node.id === at);
  const row = rows[index];
  if (!row) return rows[0] ? { to: rows[0].node.id } : null;
  const to = (target: Row | undefined): Walk => (target ? { to: target.node.id } : null);
  switch (key) {
    case "ArrowDown":
      return to(rows[index + 1]);
    case "ArrowUp":
      return to(rows[index - 1]);
    case "Home":
      return to(rows[0]);
    case "End":
      return to(rows.at(-1));
    case "ArrowRight":
      if (row.node.children.length === 0) return null;
      return row.open ? to(rows[index + 1]) : { toggle: at };
    case "ArrowLeft":
      if (row.open) return { toggle: at };
      return row.parent === null ? null : { to: row.parent };
    default:
      return null;
  }
}

/** Whose time it was: each moment counts for the deepest span that ran then, so that the sum is the whole. */
export function timeByKind(tree: Tree, nowMs: number): { kind: Kind; tookMs: number }[] {
  const spans = [...tree.nodes.values()].filter((node) => node.span);
  const endOf = (node: Node) => node.endMs ?? Math.max(nowMs, node.startMs);
  const edges = [...new Set(spans.flatMap((node) => [node.startMs, endOf(node)]))].sort((a, b) => a - b);
  const placeOf = new Map(edges.map((edge, index) => [edge, index]));
  // From each piece between two edges, the next one that nobody has taken yet.
  const free = edges.map((_, index) => index);
  const nextFree = (from: number): number => {
    let at = from;
    while (free[at] !== at) {
      free[at] = free[free[at] ?? at] ?? at;
      at = free[at] ?? at;
    }
    return at;
  };
  const depth = depths(tree);
  spans.sort((a, b) => (depth.get(b.id) ?? 0) - (depth.get(a.id) ?? 0));
  const sums = new Map<Kind, number>();
  for (const node of spans) {
    const until = placeOf.get(endOf(node)) ?? 0;
    for (let at = nextFree(placeOf.get(node.startMs) ?? 0); at < until; at = nextFree(at)) {
      sums.set(node.kind, (sums.get(node.kind) ?? 0) + (edges[at + 1] ?? 0) - (edges[at] ?? 0));
      free[at] = at + 1;
    }
  }
  return [...sums].map(([kind, tookMs]) => ({ kind, tookMs })).sort((a, b) => b.tookMs - a.tookMs);
}

function depths(tree: Tree): Map<string, number> {
  const known = new Map<string, number>();
  const waiting = tree.roots.map((node) => ({ node, depth: 0 }));
  for (let each = waiting.pop(); each; each = waiting.pop()) {
    const { node, depth } = each;
    known.set(node.id, depth);
    // A fold is no step deeper.
    for (const child of node.children) waiting.push({ node: child, depth: node.span ? depth + 1 : depth });
  }
  return known;
}
