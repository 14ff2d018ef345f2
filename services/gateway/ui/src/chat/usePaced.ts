import { type RefObject, useLayoutEffect, useRef, useState } from "react";

// Drawing what grows leaves the page at least so many times as long for everything else.
const REST = 3;
// The layout of what is shorter takes no time worth measuring.
const LONG = 4_000;

/** The text to draw: the newest, unless it grows and the last drawing took so long that the page needs a rest. */
export function usePaced(text: string, isGrowing: boolean, root: RefObject<HTMLElement | null>): string {
  const last = useRef({ text, took: 0, at: 0 });
  const [, draw] = useState(0);
  const startedAt = performance.now();
  const restsUntil = last.current.at + REST * last.current.took;
  const rests = isGrowing && startedAt < restsUntil;
  const drawn = rests ? last.current.text : text;
  useLayoutEffect(() => {
    if (rests) {
      const timer = setTimeout(() => draw((count) => count + 1), restsUntil - performance.now());
      return () => clearTimeout(timer);
    }
    if (isGrowing && drawn.length > LONG) root.current?.getBoundingClientRect(); // to lay it out, which is next anyway
    const at = performance.now();
    last.current = { text: drawn, took: at - startedAt, at };
    return undefined;
  });
  return drawn;
}
