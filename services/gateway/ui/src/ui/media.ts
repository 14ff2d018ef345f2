import { useSyncExternalStore } from "react";

export const PHONE = "(max-width: 760px)";
/** The side lies beside the main region; below this it is a sheet. */
export const WIDE = "(min-width: 1181px)";
export const COARSE = "(pointer: coarse)";

export function useMedia(query: string): boolean {
  return useSyncExternalStore(
    (watcher) => {
      const list = matchMedia(query);
      list.addEventListener("change", watcher);
      return () => list.removeEventListener("change", watcher);
    },
    () => matchMedia(query).matches,
  );
}
