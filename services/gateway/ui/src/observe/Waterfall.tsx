import { type KeyboardEvent, memo, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useCommands } from "../app/commands";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { COARSE, PHONE, useMedia } from "../ui/media";
import { duration, plural } from "../ui/words";
import { type Axis, type Row, type Tree, axisOf, barOf, opensByItself, pathTo, rowsOf, walk } from "./waterfall";

const ROW = { phone: 56, coarse: 44, dense: 28 };
/** Rows above and below what is seen. */
const MORE = 12;
const DEEPEST_INDENT = 14;

/** Spans on a common clock. Arrows walk the tree and open and close it, Enter shows the facts. */
export function Waterfall({
  tree,
  running,
  nowMs,
  chosen,
  onChoose,
}: {
  tree: Tree;
  running: boolean;
  nowMs: number;
  chosen: string | null;
  onChoose: (id: string) => void;
}) {
  const isPhone = useMedia(PHONE);
  const isCoarse = useMedia(COARSE);
  const height = isPhone ? ROW.phone : isCoarse ? ROW.coarse : ROW.dense;
  // What the address names must be seen, also inside a fold.
  const [toggled, setToggled] = useState<ReadonlySet<string>>(() => new Set(chosen ? closedAbove(tree, chosen) : []));
  const rows = useMemo(() => rowsOf(tree, toggled), [tree, toggled]);
  const [wanted, setFocused] = useState<string | null>(chosen);
  const focused = useMemo(() => nearest(tree, rows, wanted), [tree, rows, wanted]);
  const body = useRef<HTMLDivElement>(null);
  const { scroller, first, last, bring } = useWindow(rows.length, height);
  const mustFocus = useRef(false);

  const toggle = useCallback((id: string) => {
    setToggled((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  }, []);
  const choose = useCallback(
    (row: Row) => {
      setFocused(row.node.id);
      onChoose(row.node.id);
    },
    [onChoose],
  );
  const moveTo = (id: string) => {
    mustFocus.current = true;
    setFocused(id);
    const index = rows.findIndex((row) => row.node.id === id);
    if (index >= 0) bring(index);
  };
  useEffect(() => {
    if (!mustFocus.current) return;
    mustFocus.current = false;
    body.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus({ preventScroll: true });
  });
  // The span of the address is brought into view once.
  const atFirst = useRef(chosen ? rows.findIndex((row) => row.node.id === chosen) : -1);
  useLayoutEffect(() => {
    if (atFirst.current >= 0) bring(atFirst.current);
    atFirst.current = -1;
  }, [bring]);

  const press = (key: string): boolean => {
    const step = focused === null ? null : walk(rows, focused, key);
    if (!step) return false;
    if ("toggle" in step) {
      mustFocus.current = true;
      toggle(step.toggle);
    } else moveTo(step.to);
    return true;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const row = rows.find((each) => each.node.id === focused);
    if (event.key === "Enter" && row) choose(row);
    else if (!press(event.key)) return;
    event.preventDefault();
  };
  useCommands([
    { id: "next", title: "Next", group: "Do", keys: "j", inPalette: false, run: () => press("ArrowDown") },
    { id: "previous", title: "Previous", group: "Do", keys: "k", inPalette: false, run: () => press("ArrowUp") },
  ]);

  const axis = axisOf(running ? Math.max(tree.extentMs, nowMs) : tree.extentMs, running);
  const shown: number[] = [];
  for (let index = first; index < last; index += 1) shown.push(index);
  const at = rows.findIndex((row) => row.node.id === focused);
  // The focused row is always there, or focus would be lost by scrolling.
  if (at >= 0 && (at < first || at >= last)) shown.push(at);

  return (
    <div className="wf-scroll" ref={scroller}>
      <div role="treegrid" aria-label="Spans" aria-rowcount={rows.length + 1} className="wf">
        <div role="rowgroup" className="wf-head">
          <div role="row" aria-rowindex={1} className="wf-row">
            <span role="columnheader">Span</span>
            <span role="columnheader" className="wf-axis">
              <span className="sr">When</span>
              {axis.ticks.map(({ atMs, label }) => (
                <span key={atMs} aria-hidden="true" style={{ left: `${(atMs / axis.endMs) * 100}%` }}>
                  {label}
                </span>
              ))}
            </span>
            <span role="columnheader" className="wf-took">
              Took
            </span>
          </div>
        </div>
        <div
          role="rowgroup"
          ref={body}
          className="wf-body"
          style={{ height: rows.length * height }}
          onKeyDown={onKeyDown}
        >
          <div className="wf-lines" aria-hidden="true">
            <span>
              {axis.ticks.map(({ atMs }) => (
                <i key={atMs} style={{ left: `${(atMs / axis.endMs) * 100}%` }} />
              ))}
            </span>
          </div>
          {shown.map((index) => {
            const row = rows[index];
            return row ? (
              <SpanRow
                key={row.node.id}
                row={row}
                index={index}
                top={index * height}
                isFocused={index === at}
                isChosen={row.node.id === chosen}
                axis={axis}
                // What has ended is drawn once.
                nowMs={row.node.endMs === null ? nowMs : 0}
                onChoose={choose}
                onToggle={toggle}
                onFocus={setFocused}
              />
            ) : null;
          })}
        </div>
      </div>
    </div>
  );
}

function closedAbove(tree: Tree, id: string): string[] {
  return pathTo(tree, id).filter((each) => {
    const node = tree.nodes.get(each);
    return node !== undefined && !opensByItself(node);
  });
}

/** The row that has the focus: the wanted one, or what it disappeared into. */
function nearest(tree: Tree, rows: readonly Row[], wanted: string | null): string | null {
  const there = new Set(rows.map((row) => row.node.id));
  for (const id of wanted === null ? [] : [wanted, ...pathTo(tree, wanted)]) if (there.has(id)) return id;
  return rows[0]?.node.id ?? null;
}

/** Which rows are near what is seen, and how to bring one there. */
function useWindow(count: number, height: number) {
  const scroller = useRef<HTMLDivElement>(null);
  const [range, setRange] = useState({ first: 0, last: 60 });
  const look = useCallback(() => {
    const element = scroller.current;
    if (!element) return;
    const first = Math.max(0, Math.floor(element.scrollTop / height) - MORE);
    const last = Math.ceil((element.scrollTop + element.clientHeight) / height) + MORE;
    setRange((before) => (before.first === first && before.last === last ? before : { first, last }));
  }, [height]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    look();
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, [look]);
  const bring = useCallback(
    (index: number) => {
      const element = scroller.current;
      if (!element) return;
      const head = element.querySelector<HTMLElement>(".wf-head")?.offsetHeight ?? 0;
      const top = index * height;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top + height + head > element.scrollTop + element.clientHeight)
        element.scrollTop = top + height + head - element.clientHeight;
      look();
    },
    [height, look],
  );
  return { scroller, first: range.first, last: Math.min(count, range.last), bring };
}

interface SpanRowProps {
  row: Row;
  index: number;
  top: number;
  isFocused: boolean;
  isChosen: boolean;
  axis: Axis;
  nowMs: number;
  onChoose: (row: Row) => void;
  onToggle: (id: string) => void;
  onFocus: (id: string) => void;
}

const SpanRow = memo(
  function SpanRow({ row, index, top, isFocused, isChosen, axis, nowMs, onChoose, onToggle, onFocus }: SpanRowProps) {
    const { node, level, open } = row;
    const isParent = node.children.length > 0;
    const { left, width } = barOf(node, axis, nowMs);
    const took = node.tookMs ?? Math.max(0, nowMs - node.startMs);
    const shape = node.span && isParent && open ? "thin" : node.span ? "" : "fold";
    // What ended well is quiet.
    const told = node.state === "completed" ? null : node.state;
    return (
      <div
        role="row"
        aria-rowindex={index + 2}
        aria-level={level}
        aria-posinset={row.position}
        aria-setsize={row.siblings}
        {...(isParent ? { "aria-expanded": open } : {})}
        aria-selected={isChosen}
        tabIndex={isFocused ? 0 : -1}
        className={`wf-row k-${node.kind}`}
        style={{ top }}
        onClick={() => onChoose(row)}
        onFocus={() => onFocus(node.id)}
      >
        <span role="gridcell" className="wf-name" style={{ paddingLeft: Math.min(level - 1, DEEPEST_INDENT) * 14 }}>
          {isParent ? (
            <span
              className={`wf-toggle ${open ? "is-open" : ""}`}
              aria-hidden="true"
              onClick={(event) => {
                event.stopPropagation();
                onFocus(node.id);
                onToggle(node.id);
              }}
            >
              <Icon name="right" />
            </span>
          ) : (
            <span className="wf-toggle" />
          )}
          <span className="wf-kind">{node.kind}</span>
          <span className="wf-title cut" title={`${node.title} · ${node.service}`}>
            {node.title}
          </span>
          {told && <StateGlyph state={told} label={told === "running" ? "runs" : told} />}
        </span>
        <span role="gridcell" className="wf-bar">
          <span className="sr">
            begins after {duration(node.startMs)} in {node.service}
            {node.span ? "" : `, ${plural(node.count, "span")}`}
          </span>
          <i className={`${shape} ${told ?? ""}`} style={{ left: `${left}%`, width: `${width}%` }} />
        </span>
        <span role="gridcell" className="wf-took">
          {duration(took)}
          {!node.span && <span className="wf-sum"> in all</span>}
        </span>
      </div>
    );
  },
  (before, after) =>
    before.row.node === after.row.node &&
    before.row.level === after.row.level &&
    before.row.open === after.row.open &&
    before.index === after.index &&
    before.top === after.top &&
    before.isFocused === after.isFocused &&
    before.isChosen === after.isChosen &&
    before.axis.endMs === after.axis.endMs &&
    before.nowMs === after.nowMs &&
    before.onChoose === after.onChoose,
);
