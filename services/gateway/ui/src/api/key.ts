import { store, stored } from "../ui/stored";

/** The key of the gateway, kept on this device; it travels in a header only, never in an address. */
const STORED = "popagent.key";
const listeners = new Set<() => void>();

export const key = (): string => stored(STORED);

export function setKey(value: string): void {
  store(STORED, value);
  for (const tell of listeners) tell();
}

export function onKeyChange(tell: () => void): () => void {
  listeners.add(tell);
  // Another tab entered or removed it.
  const heard = (event: StorageEvent) => event.key === STORED && tell();
  addEventListener("storage", heard);
  return () => {
    listeners.delete(tell);
    removeEventListener("storage", heard);
  };
}

export function keyHeaders(): Record<string, string> {
  const value = key();
  return value ? { "x-popagent-key": value } : {};
}
