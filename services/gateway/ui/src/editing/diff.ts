/** A line of two texts: in both, only in the first, or only in the second. */
export interface Line {
  kind: "same" | "del" | "add";
  text: string;
}

/** Neighbouring changes with what stands around them; `at` is the first line's number in the new text. */
export interface Hunk {
  at: number;
  lines: Line[];
}

const CONTEXT = 1;
// Beyond this many comparisons the middle is shown as taken out and put in, instead of the page standing still.
const MOST_CELLS = 1_000_000;

export function lineDiff(before: string, after: string): Line[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const lines = (kind: Line["kind"], texts: string[]): Line[] => texts.map((text) => ({ kind, text }));
  return [
    ...lines("same", now.slice(0, head)),
    ...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...lines("same", now.slice(now.length - tail)),
  ];
}

function middle(old: string[], now: string[]): Line[] {
  const all: Line[] = [...old.map((text) => ({ kind: "del" as const, text })), ...now.map((text) => ({ kind: "add" as const, text }))];
  if (old.length * now.length > MOST_CELLS) return all;
  // shared[i][j]: how many lines the rests from i and j have in common, in order.
  const shared = Array.from({ length: old.length + 1 }, () => new Uint32Array(now.length + 1));
  const at = (i: number, j: number) => shared[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    for (let j = now.length - 1; j >= 0; j -= 1) {
      const row = shared[i];
      if (row) row[j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const found: Line[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      found.push({ kind: "same", text: now[j] ?? "" });
      i += 1;
      j += 1;
    } else if (i < old.length && (j >= now.length || at(i + 1, j) >= at(i, j + 1))) {
      found.push({ kind: "del", text: old[i] ?? "" });
      i += 1;
    } else {
      found.push({ kind: "add", text: now[j] ?? "" });
      j += 1;
    }
  }
  return found;
}

/** Only what changed, with a line of context on both sides. */
export function hunks(lines: readonly Line[]): Hunk[] {
  const found: Hunk[] = [];
  let open: Hunk | null = null;
  let number = 1;
  let quiet = 0;
  lines.forEach((line, index) => {
    if (line.kind === "same") {
      quiet += 1;
      const isNear = lines.slice(index + 1, index + 1 + CONTEXT).some((each) => each.kind !== "same");
      if (open && quiet > CONTEXT && !isNear) open = null;
      else if (open) open.lines.push(line);
      else if (isNear) found.push((open = { at: number, lines: [line] }));
    } else {
      quiet = 0;
      if (!open) found.push((open = { at: number, lines: [] }));
      open.lines.push(line);
    }
    if (line.kind !== "del") number += 1;
  });
  return found;
}
