import { Component, type ReactNode, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { sentence } from "../api/client";

/** What is read upwards. */
interface Upwards {
  loadOlder: () => Promise<unknown>;
  /** Where not all that is loaded is drawn. */
  drawn?: { spare: () => void };
}

/** Loads what came before as soon as it is near; `first` is the oldest message that is shown. */
export function Older({ of, first, scroller }: { of: Upwards; first: string | undefined; scroller: RefObject<HTMLDivElement | null> }) {
  const mark = useRef<HTMLDivElement>(null);
  const [failed, setFailed] = useState("");
  const isLoading = useRef(false);
  const load = useCallback(() => {
    if (isLoading.current) return;
    isLoading.current = true;
    setFailed("");
    of.loadOlder()
      .catch((error: unknown) => setFailed(sentence(error)))
      .finally(() => {
        isLoading.current = false;
      });
  }, [of]);
  useEffect(() => {
    const target = mark.current;
    if (!target) return;
    const seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && load(), {
      root: scroller.current,
      rootMargin: "1200px 0px 0px",
    });
    seen.observe(target);
    return () => seen.disconnect();
  }, [load, scroller, first]);
  useEffect(() => {
    if (!("requestIdleCallback" in window)) return; // Safari: what is near is drawn all the same
    const idle = requestIdleCallback(() => of.drawn?.spare());
    return () => cancelIdleCallback(idle);
  }, [of, first]);
  return (
    <div ref={mark} className="older">
      {failed ? (
        <button type="button" className="btn dense" onClick={load}>
          {failed} Try again
        </button>
      ) : (
        <span className="faint xs">Loading what came before…</span>
      )}
    </div>
  );
}

interface Held {
  /** The oldest message that is shown. */
  first: string | undefined;
  hasOlder: boolean;
  scroller: RefObject<HTMLDivElement | null>;
  children: ReactNode;
}

/**
 * Keeps what is read where it is while something is put in front of it. Browsers do that by themselves, but not at the
 * very top; and where they do, this finds nothing left to do.
 */
export class HoldPlace extends Component<Held> {
  override getSnapshotBeforeUpdate(before: Held): { known: Element; top: number } | null {
    const { first, hasOlder } = this.props;
    if (before.first === undefined || (before.first === first && before.hasOlder === hasOlder)) return null;
    const known = document.getElementById(`m-${before.first}`);
    return known && { known, top: known.getBoundingClientRect().top };
  }

  override componentDidUpdate(_props: Held, _state: unknown, held: { known: Element; top: number } | null): void {
    const box = this.props.scroller.current;
    if (box && held?.known.isConnected) box.scrollTop += held.known.getBoundingClientRect().top - held.top;
  }

  override render() {
    return this.props.children;
  }
}
