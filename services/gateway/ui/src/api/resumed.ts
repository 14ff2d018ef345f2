import { request } from "./client";
import { onKeyChange } from "./key";
import { type ServerEvent, serverEvents } from "./sse";

export type Connection = "connecting" | "open" | "lost";

// A comment comes every 15 s; a stream that is silent for three of them is dead, as after a machine's sleep.
const SILENCE_MS = 45_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/** A stream of server-sent events that goes on from its last id after every break. */
export abstract class ResumedStream {
  connection: Connection = "connecting";
  private readonly watchers = new Set<() => void>();
  private abort: AbortController | null = null;
  private again: (() => void) | null = null;

  constructor(
    private readonly path: string,
    private lastId: string | null = null,
  ) {}

  /** An event; `isFirst` where there was no place yet to go on from. */
  protected abstract take(event: ServerEvent, isFirst: boolean): void;

  start(): () => void {
    const life = { isOver: false };
    void this.run(life);
    const now = () => this.reconnectNow();
    const shown = () => document.visibilityState === "visible" && this.connection === "lost" && now();
    addEventListener("online", now);
    document.addEventListener("visibilitychange", shown);
    const offKey = onKeyChange(() => {
      this.abort?.abort();
      now();
    });
    return () => {
      life.isOver = true;
      removeEventListener("online", now);
      document.removeEventListener("visibilitychange", shown);
      offKey();
      this.abort?.abort();
      this.again?.();
    };
  }

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  reconnectNow(): void {
    this.again?.();
  }

  private become(connection: Connection): void {
    if (this.connection === connection) return;
    this.connection = connection;
    for (const watcher of this.watchers) watcher();
  }

  private async run(life: { isOver: boolean }): Promise<void> {
    let wait = FIRST_WAIT_MS;
    while (!life.isOver) {
      try {
        await this.listen(() => {
          wait = FIRST_WAIT_MS;
        });
      } catch {
        // Said by `connection`; a 401 has already opened the question for the key.
      }
      if (life.isOver) return;
      this.become("lost");
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, wait);
        this.again = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.again = null;
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
  }

  private async listen(opened: () => void): Promise<void> {
    const abort = new AbortController();
    this.abort = abort;
    let silence = setTimeout(() => abort.abort(), SILENCE_MS);
    try {
      const response = await request("GET", this.path, {
        signal: abort.signal,
        headers: this.lastId === null ? {} : { "last-event-id": this.lastId },
      });
      if (!response.body) throw new Error("the event stream has no body");
      const alive = () => {
        clearTimeout(silence);
        silence = setTimeout(() => abort.abort(), SILENCE_MS);
      };
      for await (const event of serverEvents(response.body, alive)) {
        const isFirst = this.lastId === null;
        if (event.id !== null) this.lastId = event.id;
        if (event.event === "ready" || event.event === "resync") {
          opened();
          this.become("open");
        }
        this.take(event, isFirst);
      }
    } finally {
      clearTimeout(silence);
      abort.abort();
    }
  }
}

/** Keep a connection open only while the page is in view: a browser has few of them for one server. `open` returns how to close it. */
export function whileInView(open: () => () => void): () => void {
  let close: (() => void) | null = null;
  const turn = () => {
    if (document.visibilityState === "visible") close ??= open();
    else {
      close?.();
      close = null;
    }
  };
  turn();
  document.addEventListener("visibilitychange", turn);
  return () => {
    document.removeEventListener("visibilitychange", turn);
    close?.();
  };
}
