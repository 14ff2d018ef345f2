import { useEffect } from "react";

/** Name the tab while this is shown. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · popagent`;
    return () => {
      document.title = "popagent";
    };
  }, [title]);
}
