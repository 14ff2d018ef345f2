import { parseMarkdownIntoBlocks } from "streamdown";
import { isTangled } from "./tangled";

// The open end of a text is drawn in every frame; what is longer than this is cut where blocks are complete.
const LONGEST_END = 6_000;
const TRIED_AGAIN_AFTER = 2_000;
// As many blocks may still be joined with what comes, the empty one between them counted.
const OPEN_BLOCKS = 3;
// A link by reference and a footnote need what is written elsewhere.
const REFERS = /\]\[|\[\^/;

/** A growing text in pieces that are drawn by themselves; all but the last one never change again. */
export interface Pieces {
  text: string;
  pieces: string[];
  /** Length of the last piece when it was last looked at. */
  tried: number;
}

/** Cut `text`, which mostly is the text `before` with something added. */
export function cut(text: string, before: Pieces | null): Pieces {
  if (before?.text === text) return before;
  const goesOn = before !== null && text.startsWith(before.text);
  const settled = goesOn ? before.pieces.slice(0, -1) : [];
  let end = text.slice(settled.reduce((sum, piece) => sum + piece.length, 0));
  let tried = goesOn ? before.tried : 0;
  if (end.length > LONGEST_END && end.length >= tried + TRIED_AGAIN_AFTER) {
    const found = isTangled(end) ? [] : complete(end);
    settled.push(...found);
    end = end.slice(found.reduce((sum, piece) => sum + piece.length, 0));
    tried = end.length;
  }
  return { text, pieces: [...settled, end], tried };
}

/**
 * The pieces that `end` begins with and that nothing can change any more. What is left is as short as it can be: it is
 * made anew on the page, and a selection in it would be lost.
 */
function complete(end: string): string[] {
  const blocks = parseMarkdownIntoBlocks(end);
  // Line ends are made alike there: then what is shown is not what was cut.
  if (blocks.join("") !== end) return [];
  const pieces: string[] = [];
  let first = 0;
  let length = 0;
  let whole = 0;
  for (const [index, block] of blocks.slice(0, -OPEN_BLOCKS).entries()) {
    if (REFERS.test(block) && !/^ {0,3}[`~]{3}/.test(block)) break;
    length += block.length;
    if (block.endsWith("\n\n")) whole = index + 1;
    if (whole !== index + 1 || length < LONGEST_END) continue;
    pieces.push(joined(blocks, first, whole));
    first = whole;
    length = 0;
  }
  const rest = joined(blocks, first, whole);
  return rest.length >= LONGEST_END / 2 ? [...pieces, rest] : pieces;
}

/** A text of its own: a slice would keep all that was written until now, once for each piece. */
function joined(blocks: string[], from: number, to: number): string {
  return blocks.slice(from, to).join("");
}
