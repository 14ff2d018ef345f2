/** The key of the gateway, kept on this device; it travels in a header only, never in an address. */
const STORED = "popagent.key";
const listeners = new Set<() => void>();

export function key(): string {
  try {
    return localStorage.getItem(STORED) ?? "";
  } catch {
    return ""; // storage is forbidden here; then the key lasts as long as the tab
  }
}

export function setKey(value: string): void {
  try {
    if (value) localStorage.setItem(STORED, value);
    else localStorage.removeItem(STORED);
  } catch {
    // see above
  }
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
