import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

// Within this distance of the end the reader follows the text.
const NEAR_PX = 48;

/** Where the reader is, and where the end of the text is, by its last child. */
function placeIn(box: HTMLElement, text: HTMLElement): { top: number; child: HTMLElement | null; childTop: number } {
  const child = text.lastElementChild as HTMLElement | null;
  return { top: box.scrollTop, child, childTop: child?.offsetTop ?? 0 };
}

/**
 * Keep the end of a growing text in view, but never against the reader: scrolling up or selecting lets go at once.
 * `isPinned` is false while the reader is elsewhere; `pin` goes to the end and follows again.
 */
export function useStick(scroller: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>) {
  const [isPinned, setPinned] = useState(true);
  const pinned = useRef(true);
  const set = useCallback((value: boolean) => {
    pinned.current = value;
    setPinned(value);
  }, []);

  const toEnd = useCallback(() => {
    const box = scroller.current;
    if (box) box.scrollTop = box.scrollHeight;
  }, [scroller]);

  const pin = useCallback(() => {
    set(true);
    toEnd();
  }, [set, toEnd]);

  useLayoutEffect(() => {
    const box = scroller.current;
    const text = content.current;
    if (!box || !text) return;
    let last = placeIn(box, text);
    const onScroll = () => {
      const gap = box.scrollHeight - box.clientHeight - box.scrollTop;
      // What was put in front of the text moves the place with it, in the same frame as the reader perhaps.
      const before = last.child?.isConnected ? last.child.offsetTop - last.childTop : 0;
      const moved = box.scrollTop - last.top - before;
      if (gap <= NEAR_PX) {
        if (!pinned.current && moved >= 0) set(true);
      } else if (moved < -1 && pinned.current) set(false);
      last = placeIn(box, text);
    };
    const onWheel = (event: WheelEvent) => event.deltaY < 0 && box.scrollHeight > box.clientHeight && set(false);
    // What the reader opens is what is read next: going to the end would take it away.
    let isOpening = false;
    const onClick = (event: MouseEvent) => {
      if (!(event.target instanceof Element && event.target.closest("[aria-expanded]"))) return;
      isOpening = true;
      // The observer is told after this frame was laid out.
      requestAnimationFrame(() => setTimeout(() => (isOpening = false)));
    };
    const grown = new ResizeObserver(() => {
      if (!pinned.current) return;
      if (isOpening && box.scrollHeight - box.clientHeight - box.scrollTop > NEAR_PX) set(false);
      else toEnd();
    });
    grown.observe(text);
    grown.observe(box);
    box.addEventListener("scroll", onScroll, { passive: true });
    box.addEventListener("wheel", onWheel, { passive: true });
    text.addEventListener("click", onClick);
    return () => {
      grown.disconnect();
      box.removeEventListener("scroll", onScroll);
      box.removeEventListener("wheel", onWheel);
      text.removeEventListener("click", onClick);
    };
  }, [scroller, content, set, toEnd]);

  useEffect(() => {
    const onSelect = () => {
      const selection = getSelection();
      if (selection && !selection.isCollapsed && content.current?.contains(selection.anchorNode)) set(false);
    };
    document.addEventListener("selectionchange", onSelect);
    return () => document.removeEventListener("selectionchange", onSelect);
  }, [content, set]);

  return { isPinned, pin, release: useCallback(() => set(false), [set]) };
}
