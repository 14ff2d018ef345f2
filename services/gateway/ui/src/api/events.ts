import type { EventBySubject, SuiteHealthView } from "../contracts";
import { ResumedStream } from "./resumed";
import type { ServerEvent } from "./sse";

/** What the gateway tells, by the name it has on the wire. */
type Short<S extends string> = S extends `popagent.${string}.evt.${infer N}.v1` ? N : never;
export type EventByName = { [S in keyof EventBySubject as Short<S & string>]: EventBySubject[S] };
export type EventName = keyof EventByName;

export type Heard =
  | { [N in EventName]: { kind: "event"; name: N; event: EventByName[N] } }[EventName]
  | { kind: "health"; health: SuiteHealthView }
  /** Something was missed: load again what is shown. */
  | { kind: "resync" };

const TOPICS = "sessions,turns,workspaces,settings,agents,skills,hooks,jobs,tasks,schedules,channels,health";

/** The one event stream of this tab. */
export class EventStream extends ResumedStream {
  private readonly hearers = new Set<(heard: Heard) => void>();

  constructor() {
    super(`/api/events?topics=${TOPICS}`);
  }

  hear(hearer: (heard: Heard) => void): () => void {
    this.hearers.add(hearer);
    return () => this.hearers.delete(hearer);
  }

  protected override take({ event, data }: ServerEvent, isFirst: boolean): void {
    if (event === "ready" || event === "resync") {
      // The first connection has nothing to go on from: what the page loads now may be older than it.
      if (event === "resync" || isFirst) this.tell({ kind: "resync" });
    } else if (event === "health") {
      this.tell({ kind: "health", health: JSON.parse(data) as SuiteHealthView });
    } else {
      // The gateway never tells one event under the name of another.
      this.tell({ kind: "event", ...(JSON.parse(data) as { name: EventName }) } as Heard);
    }
  }

  private tell(heard: Heard): void {
    for (const hearer of this.hearers) hearer(heard);
  }
}

export const events = new EventStream();
