import { useSyncExternalStore } from "react";

/** What was just done, said for a while; with a way back where there is one. */
interface Toast {
  id: number;
  text: string;
  action: { label: string; run: () => void } | null;
}

const LASTS_MS = 8_000;
let toasts: readonly Toast[] = [];
let nextId = 1;
const watchers = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const watcher of watchers) watcher();
}

export function dismiss(id: number): void {
  set(toasts.filter((toast) => toast.id !== id));
}

/** Say it, and return the id to take it back with. `lastsMs` is how long it stays. */
export function say(text: string, action: Toast["action"] = null, lastsMs = LASTS_MS): number {
  const id = nextId++;
  set([...toasts.slice(-2), { id, text, action }]);
  setTimeout(() => dismiss(id), lastsMs);
  return id;
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => toasts,
  );
  return (
    <div className="toasts" role="status">
      {shown.map((toast) => (
        <div key={toast.id} className="toast">
          <span className="grow">{toast.text}</span>
          {toast.action && (
            <button
              type="button"
              className="btn dense"
              onClick={() => {
                dismiss(toast.id);
                toast.action?.run();
              }}
            >
              {toast.action.label}
            </button>
          )}
          <button type="button" className="btn dense" onClick={() => dismiss(toast.id)}>
            Dismiss
          </button>
        </div>
      ))}
    </div>
  );
}
