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

/** The names that begin so under which something is kept. */
export function namesOf(prefix: string): string[] {
  const kept = [...memory].filter(([, value]) => value !== "").map(([name]) => name);
  try {
    // What was to be forgotten and could not be is in the memory, empty.
    kept.push(...Object.keys(localStorage).filter((name) => !memory.has(name)));
  } catch {
    // nothing is kept there
  }
  return kept.filter((name) => name.startsWith(prefix));
}

/** Forget everything whose name begins so. */
export function forget(prefix: string): void {
  for (const name of namesOf(prefix)) store(name, "");
}
