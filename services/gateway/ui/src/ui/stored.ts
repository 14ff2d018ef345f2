// Where storage is forbidden or full, what was kept lasts as long as the tab.
const memory = new Map<string, string>();

/** Read what this browser keeps under a name; empty when there is nothing. */
export function stored(name: string): string {
  if (memory.has(name)) return memory.get(name) ?? "";
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

/** Keep a value in this browser; an empty one is forgotten. */
export function store(name: string, value: string): void {
  memory.delete(name);
  try {
    if (value) localStorage.setItem(name, value);
    else localStorage.removeItem(name);
  } catch {
    memory.set(name, value);
  }
}

/** Forget everything whose name begins so. */
export function forget(prefix: string): void {
  for (const name of [...memory.keys()]) if (name.startsWith(prefix)) memory.delete(name);
  try {
    for (const name of Object.keys(localStorage)) if (name.startsWith(prefix)) localStorage.removeItem(name);
  } catch {
    // nothing was kept there
  }
}
