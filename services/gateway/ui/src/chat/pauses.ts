/** Waits between two attempts: a network that is back, or news, ends all of them. */
export class Pauses {
  private readonly waiting = new Set<() => void>();

  /** Wait, but no longer than until it is ended; more than one may wait. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        removeEventListener("online", done);
        this.waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      addEventListener("online", done);
      this.waiting.add(done);
    });
  }

  end(): void {
    for (const done of [...this.waiting]) done();
  }
}
