import type { EventBySubject, SuiteHealthView } from "../contracts";
import { request } from "./client";
import { onKeyChange } from "./key";
import { serverEvents } from "./sse";

/** What the gateway tells, by the name it has on the wire. */
type Short<S extends string> = S extends `popagent.${string}.evt.${infer N}.v1` ? N : never;
export type EventByName = { [S in keyof EventBySubject as Short<S & string>]: EventBySubject[S] };
export type EventName = keyof EventByName;

export type Heard =
  | { [N in EventName]: { kind: "event"; name: N; event: EventByName[N] } }[EventName]
  | { kind: "health"; health: SuiteHealthView }
  /** Something was missed: load again what is shown. */
  | { kind: "resync" };

export type Connection = "connecting" | "open" | "lost";

const TOPICS = "sessions,turns,workspaces,settings,agents,skills,hooks,jobs,tasks,schedules,health";
// A comment comes every 15 s; a stream that is silent for three of them is dead, as after a machine's sleep.
const SILENCE_MS = 45_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/** The one event stream of this tab: it goes on from its last id after every break. */
export class EventStream {
  connection: Connection = "connecting";
  private readonly hearers = new Set<(heard: Heard) => void>();
  private readonly watchers = new Set<() => void>();
  private lastId: string | null = null;
  private abort: AbortController | null = null;
  private again: (() => void) | null = null;

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

  hear(hearer: (heard: Heard) => void): () => void {
    this.hearers.add(hearer);
    return () => this.hearers.delete(hearer);
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

  private tell(heard: Heard): void {
    for (const hearer of this.hearers) hearer(heard);
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
      const response = await request("GET", `/api/events?topics=${TOPICS}`, {
        signal: abort.signal,
        headers: this.lastId ? { "last-event-id": this.lastId } : {},
      });
      if (!response.body) throw new Error("the event stream has no body");
      const alive = () => {
        clearTimeout(silence);
        silence = setTimeout(() => abort.abort(), SILENCE_MS);
      };
      for await (const { event, id, data } of serverEvents(response.body, alive)) {
        // The first connection has nothing to go on from: what the page loads now may be older than it.
        const isFirst = this.lastId === null;
        if (id !== null) this.lastId = id;
        if (event === "ready" || event === "resync") {
          opened();
          this.become("open");
          if (event === "resync" || isFirst) this.tell({ kind: "resync" });
        } else if (event === "health") {
          this.tell({ kind: "health", health: JSON.parse(data) as SuiteHealthView });
        } else {
          const { name, event: payload } = JSON.parse(data) as { name: EventName; event: never };
          this.tell({ kind: "event", name, event: payload });
        }
      }
    } finally {
      clearTimeout(silence);
      abort.abort();
    }
  }
}

export const events = new EventStream();
