import { type RefObject, useEffect } from "react";
import type { ChannelMessage } from "../contracts";
import { markRead, readUpTo } from "./queries";

// Whoever only runs past has not read it; whoever stays at the end has.
const STAYED_MS = 500;
const EDGE_PX = 8;

/** The place of the last message that is in view. */
function lastInView(box: HTMLElement): number {
  const end = box.getBoundingClientRect().bottom - EDGE_PX;
  const seen = [...box.querySelectorAll<HTMLElement>("[data-seq]")].findLast((each) => each.getBoundingClientRect().top < end);
  return Number(seen?.dataset["seq"] ?? 0);
}

/** Tell the server how far the channel was read, once that was in view for a moment in a tab that is looked at. */
export function useSeen(channelId: string, scroller: RefObject<HTMLElement | null>, items: readonly ChannelMessage[], isWanted: boolean): void {
  useEffect(() => {
    const box = scroller.current;
    if (!box || !isWanted) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const isNews = () => document.visibilityState === "visible" && lastInView(box) > readUpTo(channelId);
    const look = () => {
      clearTimeout(timer);
      if (!isNews()) return;
      const isEnd = box.scrollHeight - box.clientHeight - box.scrollTop < EDGE_PX;
      timer = setTimeout(() => {
        // What could not be told is told with what is seen next.
        if (isNews()) markRead(channelId, lastInView(box)).catch(() => {});
      }, isEnd ? 0 : STAYED_MS);
    };
    look();
    box.addEventListener("scroll", look, { passive: true });
    document.addEventListener("visibilitychange", look);
    addEventListener("online", look);
    return () => {
      clearTimeout(timer);
      box.removeEventListener("scroll", look);
      document.removeEventListener("visibilitychange", look);
      removeEventListener("online", look);
    };
  }, [channelId, scroller, items, isWanted]);
}
