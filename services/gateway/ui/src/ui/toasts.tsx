import { useSyncExternalStore } from "react";

/** What was just done, said for a while; with a way back where there is one. */
interface Toast {
  id: number;
  text: string;
  action: { label: string; run: () => void } | null;
  /** Called when it goes without its action: nobody wants to undo any more. */
  onGone: () => void;
}

const LASTS_MS = 8_000;
const MOST = 3;
let toasts: readonly Toast[] = [];
let nextId = 1;
// While somebody points at one or is in it, none goes by itself.
let isHeld = false;
const timers = new Map<number, ReturnType<typeof setTimeout>>();
const watchers = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const watcher of watchers) watcher();
}

function remove(id: number): Toast | undefined {
  clearTimeout(timers.get(id));
  timers.delete(id);
  const toast = toasts.find((each) => each.id === id);
  set(toasts.filter((each) => each.id !== id));
  return toast;
}

function dismiss(id: number): void {
  remove(id)?.onGone();
}

/** Say it; `onGone` is called once it is too late for the action. */
export function say(text: string, action: Toast["action"] = null, onGone: () => void = () => {}): void {
  const id = nextId++;
  set([...toasts, { id, text, action, onGone }]);
  for (const oldest of toasts.slice(0, -MOST)) dismiss(oldest.id);
  if (!isHeld) wait(id);
}

function wait(id: number): void {
  timers.set(
    id,
    setTimeout(() => dismiss(id), LASTS_MS),
  );
}

function hold(held: boolean): void {
  if (isHeld === held) return;
  isHeld = held;
  for (const timer of timers.values()) clearTimeout(timer);
  timers.clear();
  if (!held) for (const toast of toasts) wait(toast.id);
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
    <div
      className="toasts"
      role="status"
      onPointerEnter={() => hold(true)}
      onPointerLeave={() => hold(false)}
      onFocus={() => hold(true)}
      onBlur={() => hold(false)}
    >
      {shown.map((toast) => (
        <div key={toast.id} className="toast">
          <span className="grow">{toast.text}</span>
          {toast.action && (
            <button
              type="button"
              className="btn dense"
              onClick={() => {
                hold(false);
                remove(toast.id)?.action?.run();
              }}
            >
              {toast.action.label}
            </button>
          )}
          <button
            type="button"
            className="btn dense"
            onClick={() => {
              hold(false);
              dismiss(toast.id);
            }}
          >
            Dismiss
          </button>
        </div>
      ))}
    </div>
  );
}
