import type { RefObject } from "react";
import { useCommands } from "../app/commands";

/** J and K walk the rows of a list. */
export function useMove(list: RefObject<HTMLElement | null>): void {
  const move = (by: number) => {
    const links = [...(list.current?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  };
  useCommands([
    { id: "next", title: "Next", group: "Do", keys: "j", inPalette: false, run: () => move(1) },
    { id: "previous", title: "Previous", group: "Do", keys: "k", inPalette: false, run: () => move(-1) },
  ]);
}
