import { useEffect, useRef, useSyncExternalStore } from "react";
import { store, stored } from "../ui/stored";

/** Something a person can do: it is in the palette, and where it has keys, under them and in the list of keys. */
export interface Command {
  id: string;
  title: string;
  group: "Go to" | "Do";
  /** One chord ("mod+k", "shift+escape", "n") or two letters in turn ("g c"). `mod` is Ctrl, on a Mac ⌘. */
  keys?: string;
  /** False keeps it out of the palette: moving within a list is nothing one searches for. */
  inPalette?: boolean;
  run: () => void;
}

const PAIR_MS = 1_200;
const LETTERS = "popagent.letters";
const isMac = /Mac|iP(hone|ad)/.test(navigator.userAgent);

let registered: readonly Command[] = [];
const watchers = new Set<() => void>();

function set(next: readonly Command[]): void {
  registered = next;
  for (const watcher of watchers) watcher();
}

/** Offer commands while the component is shown, those that apply; the newest of an id is the one that runs. */
export function useCommands(offered: (Command | false)[]): void {
  const commands = offered.filter((command) => command !== false);
  const latest = useRef(commands);
  latest.current = commands;
  const shape = commands.map((command) => `${command.id}\n${command.title}\n${command.keys ?? ""}`).join("\n\n");
  useEffect(() => {
    const mine = latest.current.map((command) => ({
      ...command,
      run: () => latest.current.find((each) => each.id === command.id)?.run(),
    }));
    set([...registered, ...mine]);
    return () => set(registered.filter((command) => !mine.includes(command)));
  }, [shape]);
}

export function useAllCommands(): readonly Command[] {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => registered,
  );
}

/** Single letters are a hazard for those who dictate: they can be switched off. */
export function lettersAreOn(): boolean {
  return stored(LETTERS) !== "off";
}

export function setLetters(on: boolean): void {
  store(LETTERS, on ? "" : "off");
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function chord(event: KeyboardEvent): string {
  const key = event.key.toLowerCase();
  const parts = [];
  if (isMac ? event.metaKey : event.ctrlKey) parts.push("mod");
  if (event.altKey) parts.push("alt");
  // The shift in "?" is part of the character.
  if (event.shiftKey && (key.length > 1 || /[a-z]/.test(key))) parts.push("shift");
  return [...parts, key].join("+");
}

/** Run commands by key; returns how to stop listening. */
export function listenForKeys(): () => void {
  let first = "";
  let firstAt = 0;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.isComposing || ["Control", "Shift", "Alt", "Meta"].includes(event.key)) return;
    const pressed = chord(event);
    const isPlain = !pressed.includes("+") && event.key.length === 1;
    if (isPlain && (isTyping(event.target) || !lettersAreOn())) return;
    // What lies behind a sheet gets no keys: Escape is the sheet's, whatever the screen would do with it.
    // Looked for last: in a long chat that takes longer than drawing what was typed.
    if (document.querySelector("dialog[open]")) return;
    const pair = first && performance.now() - firstAt < PAIR_MS ? `${first} ${pressed}` : "";
    const found =
      registered.findLast((command) => pair && command.keys === pair) ??
      registered.findLast((command) => command.keys === pressed);
    first = "";
    if (found) {
      event.preventDefault();
      found.run();
    } else if (isPlain && registered.some((command) => command.keys?.startsWith(`${pressed} `))) {
      first = pressed;
      firstAt = performance.now();
    }
  };
  addEventListener("keydown", onKeyDown);
  return () => removeEventListener("keydown", onKeyDown);
}

/** Keys as they are written on this machine's keyboard. */
export function spell(keys: string): string {
  const names: Record<string, string> = { mod: isMac ? "⌘" : "Ctrl", shift: "Shift", escape: "Esc", enter: "Enter" };
  return keys
    .split(" ")
    .map((each) =>
      each
        .split("+")
        .map((part) => names[part] ?? part.toUpperCase())
        .join("+"),
    )
    .join(" then ");
}
