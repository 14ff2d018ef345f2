import { Chat } from "@ai-sdk/react";
import { ApiError, api, query, sentence } from "../api/client";
import { type Heard, events } from "../api/events";
import { place } from "../app/queries";
import type { SessionSummary, SessionView } from "../contracts";
import { type Message, withNewest } from "./messages";
import { CutError, type TurnChoice, transport } from "./transport";

const PAGE = 50;
const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 5_000;

/** Why words were not taken; they go back to where they were written. */
export interface Refused {
  text: string;
  sentence: string;
}

export interface SessionState {
  phase: "loading" | "ready" | "missing" | "failed";
  /** Why the chat could not be loaded. */
  failure: string | null;
  summary: SessionSummary | null;
  /** There are older messages than those loaded. */
  hasOlder: boolean;
  /** The page shown is not the newest: there are messages after it. */
  hasNewer: boolean;
  /** The running turn is out of reach; it goes on, and so does the search for it. */
  isCut: boolean;
  isStopping: boolean;
  refused: Refused | null;
}

/** One chat on this page: its history, its running turn, and every way of losing and finding that again. */
export class ChatSession {
  readonly chat: Chat<Message>;
  state: SessionState;
  private readonly watchers = new Set<() => void>();
  private previousCursor: string | null = null;
  private nextCursor: string | null = null;
  /** Set when a stream ended without the end of its turn. */
  private cut: CutError | null = null;
  private refusal: ApiError | null = null;
  private following = false;
  private submitting = false;
  private loading: Promise<void> | null = null;
  private queued: Promise<void> | null = null;
  /** Rises when a turn begins to be read here: what was asked for before that is older than what is shown. */
  private epoch = 0;
  private wakeUp: (() => void) | null = null;
  /** Nothing of it is stored yet. */
  private isUnstored: boolean;

  constructor(
    readonly id: string,
    isNew: boolean,
  ) {
    this.isUnstored = isNew;
    this.state = {
      phase: isNew ? "ready" : "loading",
      failure: null,
      summary: null,
      hasOlder: false,
      hasNewer: false,
      isCut: false,
      isStopping: false,
      refused: null,
    };
    this.chat = new Chat<Message>({
      id,
      transport: transport(),
      generateId: () => crypto.randomUUID(),
      onData: (part) => {
        // The gateway ends the stream, not the turn.
        if (part.type === "data-connection") this.cut = new CutError(true);
      },
      onError: (error) => {
        if (error instanceof CutError) this.cut = error;
        else if (error instanceof ApiError) this.refusal = error;
        // Anything else is what the turn itself said; its stored message says it too.
      },
    });
    if (!isNew) void this.open();
  }

  watch = (watcher: () => void): (() => void) => {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  };

  snapshot = (): SessionState => this.state;

  private set(change: Partial<SessionState>): void {
    this.state = { ...this.state, ...change };
    for (const watcher of this.watchers) watcher();
  }

  /** A stream is read here, or looked for again. */
  get isBusy(): boolean {
    return this.following || this.submitting;
  }

  // History

  /** Load the newest messages, and join the turn that runs. */
  async open(): Promise<void> {
    if (this.isUnstored) return;
    this.set({ phase: this.state.phase === "ready" ? "ready" : "loading", failure: null });
    try {
      await this.reload();
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.set({ phase: "missing" });
      else if (this.state.phase !== "ready") this.set({ phase: "failed", failure: sentence(error) });
      return;
    }
    if (this.state.summary?.runningTurnId) void this.follow();
  }

  /** Show what is stored: newest page, and what was loaded before it where it fits. */
  private reload(): Promise<void> {
    if (!this.loading) {
      this.loading = this.load().finally(() => {
        this.loading = null;
      });
      return this.loading;
    }
    // The answer on its way may be older than the reason for this call; one more is enough for all who ask now.
    this.queued ??= this.loading
      .catch(() => {}) // whoever asked for that one hears of it
      .then(() => {
        this.queued = null;
        return this.reload();
      });
    return this.queued;
  }

  private async load(): Promise<void> {
    const epoch = this.epoch;
    const view = await api.get<SessionView>(`/api/sessions/${this.id}${query({ limit: PAGE })}`);
    if (epoch !== this.epoch) return;
    const page = view.messages as unknown as Message[];
    const { messages, continues } = withNewest(this.chat.messages, page);
    if (!continues) this.previousCursor = view.previousCursor;
    this.nextCursor = null;
    this.chat.messages = messages;
    this.learn(view);
    this.set({ phase: "ready", failure: null, hasOlder: this.previousCursor !== null, hasNewer: false });
  }

  private learn(view: SessionView): void {
    const { messages: _, previousCursor: __, nextCursor: ___, ...summary } = view;
    this.isUnstored = false;
    const known = this.state.summary;
    if (!known || known.updatedAt <= summary.updatedAt || known.revision < summary.revision) this.set({ summary });
  }

  /** Put the messages before the loaded ones above them. */
  async loadOlder(): Promise<void> {
    if (!this.previousCursor) return;
    const cursor = this.previousCursor;
    const view = await api.get<SessionView>(`/api/sessions/${this.id}${query({ limit: PAGE, before: cursor })}`);
    if (this.previousCursor !== cursor) return;
    this.previousCursor = view.previousCursor;
    this.chat.messages = [...(view.messages as unknown as Message[]), ...this.chat.messages];
    this.set({ hasOlder: view.previousCursor !== null });
  }

  /** Put the messages after the loaded ones below them. */
  async loadNewer(): Promise<void> {
    if (!this.nextCursor) return;
    const cursor = this.nextCursor;
    const view = await api.get<SessionView>(`/api/sessions/${this.id}${query({ limit: PAGE, after: cursor })}`);
    if (this.nextCursor !== cursor) return;
    this.nextCursor = view.nextCursor;
    this.chat.messages = [...this.chat.messages, ...(view.messages as unknown as Message[])];
    this.set({ hasNewer: view.nextCursor !== null });
  }

  /** Load the part of the chat where a message is, and show its branch; false when there is no such message. */
  async reveal(messageId: string): Promise<boolean> {
    if (this.chat.messages.some((message) => message.id === messageId)) return true;
    if (this.isBusy) return false;
    const epoch = this.epoch;
    try {
      const view = await api.get<SessionView>(
        `/api/sessions/${this.id}${query({ limit: PAGE, around: messageId })}`,
      );
      if (epoch !== this.epoch) return false;
      this.previousCursor = view.previousCursor;
      this.nextCursor = view.nextCursor;
      this.chat.messages = view.messages as unknown as Message[];
      this.learn(view);
      this.set({ hasOlder: view.previousCursor !== null, hasNewer: view.nextCursor !== null });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "other_branch") {
        await this.switchTo(messageId);
        return this.reveal(messageId);
      }
      if ([404, 422].includes(error.status)) return false;
      throw error;
    }
  }

  /** Leave an older part of the chat. */
  async toNewest(): Promise<void> {
    if (this.state.hasNewer) await this.reload();
  }

  // Turns

  /** Say something; an edit replaces what was said, on a branch of its own. */
  async send(text: string, choice: Omit<TurnChoice, "edits">, edits: string | null = null): Promise<void> {
    if (this.isBusy) return;
    await this.toNewest();
    const before = this.chat.messages;
    const id = crypto.randomUUID();
    if (edits) this.chat.messages = before.slice(0, before.findIndex((message) => message.id === edits));
    await this.submit(
      () => this.chat.sendMessage({ id, role: "user", parts: [{ type: "text", text }] }, { body: { ...choice, edits } }),
      () => this.chat.messages.some((message) => message.id === id),
      before,
      text,
    );
  }

  /** Write an answer again, on a branch of its own. */
  async regenerate(messageId: string, model: string | null): Promise<void> {
    if (this.isBusy) return;
    await this.toNewest();
    const body: TurnChoice = { model, workspaceId: null, edits: null };
    const before = this.chat.messages;
    await this.submit(
      () => this.chat.regenerate({ messageId, body }),
      () => this.state.summary?.runningTurnId != null,
      before,
      "",
    );
  }

  private async submit(
    start: () => Promise<void>,
    wasTaken: () => boolean,
    before: Message[],
    text: string,
  ): Promise<void> {
    this.submitting = true;
    this.epoch++;
    this.cut = null;
    this.refusal = null;
    this.set({ refused: null });
    try {
      await start();
      // What TypeScript cannot see: the callbacks of the chat have set these meanwhile.
      const cut = this.cut as CutError | null;
      const refusal = this.refusal as ApiError | null;
      if (refusal) {
        this.undo(before, text, refusal.message);
        if (refusal.code === "turn_running" || refusal.status === 409) await this.reload().catch(() => {});
      } else if (cut && !cut.answered) {
        // Nobody knows whether it arrived; the stored chat does.
        await this.lookAgain();
        if (!wasTaken()) this.undo(before, text, "popagent could not be reached. Nothing was sent.");
      }
    } finally {
      this.submitting = false;
    }
    const cut = this.cut as CutError | null;
    if (cut) await this.follow();
    else await this.finish();
  }

  private undo(before: Message[], text: string, why: string): void {
    this.chat.messages = before;
    this.chat.clearError();
    this.set({ refused: { text, sentence: why } });
  }

  /** Ask for the stored chat until it answers. */
  private async lookAgain(): Promise<void> {
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      this.set({ isCut: true });
      await this.pause(wait);
      try {
        await this.reload();
        this.set({ isCut: false });
        return;
      } catch (error) {
        if (error instanceof ApiError && [401, 404].includes(error.status)) return;
        // else it does not answer yet
      }
    }
  }

  /** Read the running turn to its end, through as many cuts as it takes. */
  async follow(): Promise<void> {
    if (this.isBusy) return;
    this.following = true;
    this.epoch++;
    try {
      for (let wait = FIRST_WAIT_MS; ; ) {
        const startedAt = performance.now();
        this.cut = null;
        this.refusal = null;
        await this.chat.resumeStream();
        const cut = this.cut as CutError | null;
        const refusal = this.refusal as ApiError | null;
        if (!cut && (!refusal || [401, 404].includes(refusal.status))) break;
        this.set({ isCut: true });
        if (performance.now() - startedAt > LONGEST_WAIT_MS) wait = FIRST_WAIT_MS;
        await this.pause(wait);
        wait = Math.min(wait * 2, LONGEST_WAIT_MS);
      }
    } finally {
      this.following = false;
    }
    await this.finish();
  }

  /** Show the turn as it was stored. */
  private async finish(): Promise<void> {
    this.set({ isStopping: false, isCut: false });
    try {
      await this.reload();
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return; // refused before anything was stored
      this.set({ isCut: true });
      await this.lookAgain();
    }
    this.chat.clearError();
    // Another turn may have begun meanwhile, from another device.
    if (this.state.summary?.runningTurnId) void this.follow();
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.wakeUp?.(), ms);
      const done = () => {
        clearTimeout(timer);
        removeEventListener("online", done);
        this.wakeUp = null;
        resolve();
      };
      this.wakeUp = done;
      addEventListener("online", done);
    });
  }

  /** Ask the turn to stop; its stamp says when it has. */
  async stop(): Promise<void> {
    this.set({ isStopping: true });
    try {
      await api.post(`/api/chat/${this.id}/stop`);
    } catch (error) {
      this.set({ isStopping: false });
      if (error instanceof ApiError && error.code === "nothing_runs") {
        if (!this.isBusy) await this.finish();
        return;
      }
      throw error;
    }
  }

  /** Show the branch through another message of the same place. */
  async switchTo(messageId: string): Promise<void> {
    const view = await api.put<SessionSummary>(`/api/sessions/${this.id}/head`, {
      revision: this.state.summary?.revision ?? 0,
      messageId,
    });
    place(view);
    this.set({ summary: view });
    await this.reload();
  }

  dismissRefusal(): void {
    this.set({ refused: null });
  }

  // What others do

  hear(heard: Heard): void {
    if (heard.kind === "resync") {
      this.wakeUp?.();
      if (!this.isBusy && this.state.phase !== "loading") void this.open();
    } else if (heard.kind === "event") {
      switch (heard.name) {
        case "sessions-deleted":
          if (heard.event.sessionId === this.id) this.set({ phase: "missing" });
          return;
        case "sessions-changed":
        case "turns-started":
        case "turns-ended":
          if (heard.event.session.id === this.id) this.hearSummary(heard.event.session);
      }
    }
  }

  private hearSummary(summary: SessionSummary): void {
    const known = this.state.summary;
    if (known && (known.revision > summary.revision || known.updatedAt > summary.updatedAt)) return;
    const isNews = known?.updatedAt !== summary.updatedAt || known.revision !== summary.revision;
    this.isUnstored = false;
    this.set({ summary });
    this.wakeUp?.();
    if (isNews && !this.isBusy) void this.open();
  }
}

// The chats that were opened last stay, with their streams, while the person looks at another.
const KEPT = 6;
const open = new Map<string, ChatSession>();

/** The chat of this id; `isNew` when it was made here and nothing of it is stored yet. */
export function chatSession(id: string, isNew = false): ChatSession {
  const known = open.get(id);
  const session = known ?? new ChatSession(id, isNew);
  open.delete(id);
  open.set(id, session);
  for (const [old, each] of open) {
    if (open.size <= KEPT) break;
    if (each.isBusy || each === session) continue;
    open.delete(old);
  }
  return session;
}

events.hear((heard) => {
  for (const session of open.values()) session.hear(heard);
});
