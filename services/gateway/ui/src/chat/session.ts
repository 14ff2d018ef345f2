import { Chat } from "@ai-sdk/react";
import { ApiError, api, sentence } from "../api/client";
import type { Heard } from "../api/events";
import { place, summaryOf } from "../app/queries";
import type { SessionSummary, SessionView } from "../contracts";
import { Activities } from "./activity";
import { NEW_CHAT, keepUnsure, settle } from "./drafts";
import { Drawn } from "./drawn";
import { rendererIfSoon } from "./loadMarkdown";
import type { Message } from "./messages";
import { Pages } from "./pages";
import { Pauses } from "./pauses";
import { CutError, type TurnChoice, transport } from "./transport";

const NOT_SENT = "popagent could not be reached. Nothing was sent.";
const FIRST_WAIT_MS = 400;
const LONGEST_WAIT_MS = 5_000;

/** Why words were not taken; `text` goes back to where one writes, once. */
export interface Refused {
  text: string;
  isEdit: boolean;
  sentence: string;
}

/** How a stream ended, when it did not end with its turn. */
interface Outcome {
  cut: CutError | null;
  refusal: ApiError | null;
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
  /** What specialists do for the running answer. */
  readonly activities = new Activities();
  readonly drawn = new Drawn(
    () => this.chat.messages,
    () => this.set({}),
  );
  state: SessionState;
  private readonly watchers = new Set<() => void>();
  private readonly pages: Pages;
  private outcome: Outcome = { cut: null, refusal: null };
  private following = false;
  private submitting = false;
  private loading: Promise<void> | null = null;
  private queued: Promise<void> | null = null;
  /** What the last answer knew of the chat. */
  private loadedAs: SessionSummary | null = null;
  /** Rises when a turn begins to be read here: what was asked for before that is older than what is shown. */
  private epoch = 0;
  private readonly pauses = new Pauses();
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
        if (part.type === "data-connection") this.outcome.cut = new CutError(true);
        const answer = this.chat.messages.at(-1);
        if (part.type === "data-agentActivity" && part.id && answer) this.activities.take(answer.id, part.id, part.data);
      },
      onError: (error) => {
        if (error instanceof CutError) this.outcome.cut = error;
        else if (error instanceof ApiError) this.outcome.refusal = error;
        // Anything else is what the turn itself said; its stored message says it too.
      },
    });
    this.pages = new Pages(this.chat, (more) => this.set(more));
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
    const [view] = await Promise.all([this.pages.ask(), this.state.phase === "loading" && rendererIfSoon()]);
    if (epoch === this.epoch) this.showNewest(view);
  }

  private showNewest(view: SessionView): void {
    this.pages.showNewest(view);
    this.learn(view);
    this.set({ phase: "ready", failure: null });
  }

  private learn(view: SessionView): void {
    const summary = summaryOf(view);
    this.isUnstored = false;
    this.loadedAs = summary;
    const known = this.state.summary;
    if (!known || known.updatedAt <= summary.updatedAt || known.revision < summary.revision) this.set({ summary });
  }

  /** Put more of the messages before the drawn ones above them. */
  async loadOlder(): Promise<void> {
    if (this.drawn.older()) return;
    if (await this.pages.older()) this.drawn.older();
  }

  /** Put the messages after the loaded ones below them. */
  loadNewer(): Promise<void> {
    return this.pages.newer();
  }

  /** Load the part of the chat where a message is, and show its branch. */
  async reveal(messageId: string): Promise<"shown" | "missing" | "busy"> {
    const at = this.chat.messages.findIndex((message) => message.id === messageId);
    if (at >= 0) {
      this.drawn.reach(at);
      return "shown";
    }
    if (this.isBusy) return "busy";
    const epoch = this.epoch;
    try {
      const view = await this.pages.ask({ around: messageId });
      if (epoch !== this.epoch) return "busy";
      this.pages.showOnly(view);
      this.drawn.all();
      this.learn(view);
      return "shown";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === "other_branch") {
        await this.switchTo(messageId);
        return this.reveal(messageId);
      }
      if ([404, 422].includes(error.status)) return "missing";
      throw error;
    }
  }

  /** Leave an older part of the chat. */
  async toNewest(): Promise<void> {
    if (!this.state.hasNewer) return;
    await this.reload();
    if (this.state.summary?.runningTurnId) void this.follow();
  }

  // Turns

  /** Say something; an edit replaces what was said, on a branch of its own. */
  async send(text: string, choice: Omit<TurnChoice, "edits">, edits: string | null = null): Promise<void> {
    const id = crypto.randomUUID();
    await this.submit(text, edits, {
      names: edits,
      start: () => {
        const shown = this.chat.messages;
        if (edits) this.chat.messages = shown.slice(0, shown.findIndex((message) => message.id === edits));
        const message = { id, role: "user" as const, parts: [{ type: "text" as const, text }] };
        return this.chat.sendMessage(message, { body: { ...choice, edits } });
      },
      wasTaken: () => this.chat.messages.some((message) => message.id === id),
    });
  }

  /** Write an answer again, on a branch of its own. */
  async regenerate(messageId: string, model: string | null): Promise<void> {
    const body: TurnChoice = { model, workspaceId: null, edits: null };
    await this.submit("", null, {
      names: messageId,
      start: () => this.chat.regenerate({ messageId, body }),
      wasTaken: () => this.state.summary?.runningTurnId != null,
    });
  }

  private async submit(
    text: string,
    edits: string | null,
    turn: { names: string | null; start: () => Promise<void>; wasTaken: () => boolean },
  ): Promise<void> {
    if (this.isBusy) return;
    this.submitting = true;
    this.set({ refused: null, isStopping: false });
    const own = this.isUnstored ? NEW_CHAT : this.id;
    let before = this.chat.messages;
    let cut: CutError | null = null;
    try {
      // What stands above new words goes with them: it must be there, down to the newest. What names a message leaves
      // all below it behind.
      await (this.state.hasNewer && !turn.names ? this.reload() : this.loading);
      before = this.chat.messages;
      this.pages.endHere();
      const outcome = await this.read(turn.start);
      cut = outcome.cut;
      if (outcome.refusal) throw outcome.refusal;
      if (cut && !cut.answered) {
        // Nobody knows whether it arrived; the stored chat does.
        keepUnsure(own, text);
        const found = await this.lookAgain();
        if (found === "locked") throw new Error("The key was refused before it was known whether this was sent.");
        if (found === "missing" || !turn.wasTaken()) throw new Error(NOT_SENT);
      }
    } catch (error) {
      this.chat.messages = before;
      this.chat.clearError();
      const isAway = error instanceof ApiError && error.status === 0;
      this.set({ refused: { text, isEdit: edits !== null, sentence: isAway ? NOT_SENT : sentence(error) } });
      cut = null;
    } finally {
      this.submitting = false;
      settle(own);
    }
    if (cut) this.set({ isCut: true });
    await (cut ? this.follow() : this.finish());
  }

  /** Read one stream to its end, and say how it ended. */
  private async read(start: () => Promise<void>): Promise<Outcome> {
    this.epoch++;
    const outcome: Outcome = { cut: null, refusal: null };
    this.outcome = outcome;
    await start();
    return outcome;
  }

  /** Ask for the stored chat until it answers; `locked` when it wants another key first. */
  private async lookAgain(): Promise<"stored" | "missing" | "locked"> {
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
      this.set({ isCut: true });
      await this.pauses.wait(wait);
      try {
        await this.reload();
        this.set({ isCut: false });
        return "stored";
      } catch (error) {
        if (!(error instanceof ApiError) || ![401, 404].includes(error.status)) continue; // it does not answer yet
        this.set({ isCut: false });
        return error.status === 401 ? "locked" : "missing";
      }
    }
  }

  /** Read the running turn to its end, through as many cuts as it takes. */
  async follow(): Promise<void> {
    if (this.isBusy) return;
    this.following = true;
    try {
      for (let wait = FIRST_WAIT_MS; ; ) {
        const startedAt = performance.now();
        const { cut, refusal } = await this.read(() => this.chat.resumeStream());
        // Another key opens the chat again.
        if (refusal?.status === 401) return this.set({ isCut: false, isStopping: false });
        if (!cut && (!refusal || refusal.status === 404)) break;
        this.set({ isCut: true });
        if (performance.now() - startedAt > LONGEST_WAIT_MS) wait = FIRST_WAIT_MS;
        await this.pauses.wait(wait);
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
    this.chat.clearError();
    if (this.isUnstored && this.chat.messages.length === 0) return;
    let found: "stored" | "missing" | "locked" = "stored";
    try {
      await this.reload();
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      found = status === 401 ? "locked" : status === 404 ? "missing" : await this.lookAgain();
    }
    if (found === "missing" && !this.isUnstored) this.set({ phase: "missing" });
    // Another turn may have begun meanwhile, from another device.
    if (found === "stored" && this.state.summary?.runningTurnId) void this.follow();
  }

  /** Ask the turn to stop; its stamp says when it has. */
  async stop(): Promise<void> {
    this.set({ isStopping: true });
    for (;;) {
      try {
        await api.post(`/api/chat/${this.id}/stop`);
        return;
      } catch (error) {
        const nothingRuns = error instanceof ApiError && error.code === "nothing_runs";
        if (!nothingRuns || !this.submitting || !this.state.isStopping) {
          this.set({ isStopping: false });
          if (!nothingRuns) throw error;
          if (!this.isBusy) await this.finish();
          return;
        }
        // It was sent and is not stored yet: a moment later there is something to stop.
        await this.pauses.wait(FIRST_WAIT_MS);
      }
    }
  }

  /** Show the branch through another message of the same place. */
  async switchTo(messageId: string): Promise<void> {
    const revision = this.state.summary?.revision ?? 0;
    const view = await api.put<SessionView>(`/api/sessions/${this.id}/head`, { revision, messageId });
    place(summaryOf(view));
    this.showNewest(view);
    this.drawn.all();
  }

  /** Take the words that were refused, once; why they were stays. */
  takeBack(): string {
    const refused = this.state.refused;
    if (!refused?.text) return "";
    this.set({ refused: { ...refused, text: "" } });
    return refused.text;
  }

  dismissRefusal(): void {
    this.set({ refused: null });
  }

  // What others do

  hear(heard: Heard): void {
    if (heard.kind === "resync") {
      this.pauses.end();
      if (this.state.phase !== "loading") this.openUnlessRead();
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
    this.pauses.end();
    if (isNews) void this.openFor(summary);
  }

  /** Show what was heard of, unless the answer on its way has it: the end of a turn is seen in its stream too. */
  private async openFor({ updatedAt, revision }: SessionSummary): Promise<void> {
    await this.loading?.catch(() => {}); // whoever asked for that one hears of it
    if (this.loadedAs && this.loadedAs.updatedAt >= updatedAt && this.loadedAs.revision >= revision) return;
    this.openUnlessRead();
  }

  /** Show what is new, but not to somebody who reads an older part, nor over a stream. */
  private openUnlessRead(): void {
    if (!this.isBusy && !this.state.hasNewer) void this.open();
  }
}
