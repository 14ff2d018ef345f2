import { type Message, startOf } from "./messages";
import { PAGE } from "./pages";

// Of a page as much is drawn at a time: first what is seen of its end, then what is near.
const FIRST_SCREENS = 1.2;
const STEP_PX = 1_200;

/**
 * What is drawn of the loaded messages: all from one of them on. Those before it are drawn when they are near or there is
 * time. `changed` is called when more of them are.
 */
export class Drawn {
  private oldest: string | null = null;

  constructor(
    private readonly loaded: () => Message[],
    private readonly changed: () => void,
  ) {}

  /** Where it begins; what was never drawn begins so that its end fills the screen. */
  get from(): number {
    const messages = this.loaded();
    const known = this.oldest === null ? -1 : messages.findIndex((message) => message.id === this.oldest);
    if (known >= 0) return known;
    const at = startOf(messages, messages.length, FIRST_SCREENS * innerHeight);
    this.oldest = messages[at]?.id ?? null;
    return at;
  }

  /** Whoever opens the chat again sees its end first. */
  endOnly(): void {
    this.oldest = null;
  }

  /** Draw all that is loaded. */
  all(): void {
    this.begin(0);
  }

  /** Draw more of what is loaded; false when all of it is drawn. */
  older(): boolean {
    const { from } = this;
    if (from > 0) this.begin(startOf(this.loaded(), from, STEP_PX));
    return from > 0;
  }

  /** While there is time, draw the rest of a page: what is loaded can be found by the browser's own search. */
  spare(): void {
    if (this.loaded().length - this.from < PAGE) this.older();
  }

  /** Draw the loaded message at this place, and something above it. */
  reach(at: number): void {
    if (at < this.from) this.begin(startOf(this.loaded(), at, STEP_PX));
  }

  private begin(at: number): void {
    this.oldest = this.loaded()[at]?.id ?? null;
    this.changed();
  }
}
