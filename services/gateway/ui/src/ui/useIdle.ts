import { useEffect, useState } from "react";

// Safari does not tell when it is idle.
const LATER_MS = 500;

/** False until what is more urgent was asked for and drawn. */
export function useIdle(): boolean {
  const [isIdle, setIdle] = useState(false);
  useEffect(() => {
    const found = () => setIdle(true);
    if (!("requestIdleCallback" in window)) {
      const timer = setTimeout(found, LATER_MS);
      return () => clearTimeout(timer);
    }
    const idle = requestIdleCallback(found);
    return () => cancelIdleCallback(idle);
  }, []);
  return isIdle;
}
