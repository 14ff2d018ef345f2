import { useChat } from "@ai-sdk/react";
import { useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { Link } from "wouter";
import { useCommands } from "../app/commands";
import { Icon } from "../ui/Icon";
import { Skeletons } from "../ui/Skeletons";
import { StateGlyph } from "../ui/StateGlyph";
import { attempt } from "../ui/attempt";
import { useHash } from "../ui/useHash";
import { ModelNotice } from "../welcome/ModelNotice";
import { Welcome } from "../welcome/Welcome";
import { ChatBar } from "./ChatBar";
import { Composer } from "./Composer";
import { Elapsed } from "./Elapsed";
import { InChatSearch } from "./InChatSearch";
import { HoldPlace, Older } from "./Older";
import { Transcript, type TranscriptActions } from "./Transcript";
import { Told } from "./activity";
import { NEW_CHAT, adoptNew, chosenModel, draft, keepDraft, keepModel } from "./drafts";
import { lastChat, setLastChat } from "./lastChat";
import type { ChatSession } from "./session";
import { show } from "./show";
import { useStick } from "./useStick";

// Text is painted at most once in this time while it streams: two frames.
const THROTTLE_MS = 33;

/** One chat, open. `isNew` until its first message is taken; `onBegun` is told then. */
export function Conversation({
  session,
  isNew,
  onBegun,
}: {
  session: ChatSession;
  isNew: boolean;
  onBegun: () => void;
}) {
  const state = useSyncExternalStore(session.watch, session.snapshot);
  const { status } = useChat({ chat: session.chat, throttle: THROTTLE_MS });
  // What the hook returned may be older than the session, which says where to begin.
  const loaded = session.chat.messages;
  const from = session.drawn.from;
  const messages = useMemo(() => (from ? loaded.slice(from) : loaded), [loaded, from]);
  const hasOlder = from > 0 || state.hasOlder;
  useEffect(() => () => session.drawn.endOnly(), [session]);
  const runs = state.summary?.runningTurnId != null || status === "submitted" || status === "streaming";
  const isOutOfReach = state.isCut && status !== "streaming";
  // What is kept on this device for this chat.
  const own = isNew ? NEW_CHAT : session.id;
  const [text, setText] = useState(() => draft(own));
  const [model, setModel] = useState(() => chosenModel(own));
  const [workspaceId, setWorkspaceId] = useState<string | null>(null);
  const [searching, setSearching] = useState(false);
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const stick = useStick(scroller, content);

  const write = useCallback(
    (value: string) => {
      setText(value);
      keepDraft(own, value);
    },
    [own],
  );

  // Words that were not taken go back to the field, in front of what was written meanwhile.
  useEffect(() => {
    const back = session.takeBack();
    if (back) write(text ? `${back}\n\n${text}` : back);
  }, [session, state.refused, text, write]);

  const send = useCallback(
    (words: string, edits: string | null = null) => {
      const said = words.trim();
      if (!said || session.isBusy) return false;
      stick.pin();
      // Asked of the session: this changes as seldom as it can, for every message is drawn again when it does.
      void session.send(said, { model, workspaceId: session.state.summary ? null : workspaceId }, edits);
      return true;
    },
    [session, model, workspaceId, stick.pin],
  );

  // Only what was taken has an address.
  const isTaken = state.summary !== null || status === "streaming";
  useEffect(() => {
    if (!isNew || !isTaken) return;
    adoptNew(session.id);
    onBegun();
  }, [isNew, isTaken, onBegun, session.id]);

  const stop = useCallback(() => {
    void attempt(session.stop());
  }, [session]);

  const actions = useMemo<TranscriptActions>(
    () => ({
      sessionId: session.id,
      regenerate: (id) => {
        stick.pin();
        void session.regenerate(id, model);
      },
      goOn: () => void send("Go on from where you stopped."),
      edit: (id, changed) => void send(changed, id),
      switchTo: (id) => {
        stick.release();
        void attempt(session.switchTo(id));
      },
    }),
    [session, model, send, stick.pin, stick.release],
  );

  const isArchived = state.summary?.archivedAt != null;
  const blocked = isArchived
    ? "This chat is archived. Restore it to go on."
    : isOutOfReach
      ? "Connection lost. What you write is kept."
      : null;
  const lastAnswer = messages.findLast((message) => message.role === "assistant");
  useCommands([
    runs && { id: "chat stop", title: "Stop the turn", group: "Do", keys: "shift+escape", run: stop },
    !isNew && { id: "chat find", title: "Search in this chat", group: "Do", keys: "/", run: () => setSearching(true) },
    lastAnswer !== undefined &&
      !runs &&
      !isArchived && {
        id: "chat regenerate",
        title: "Write the last answer again",
        group: "Do",
        run: () => actions.regenerate(lastAnswer.id),
      },
    {
      id: "chat write",
      title: "To the composer",
      group: "Go to",
      keys: "escape",
      inPalette: false,
      run: () => document.getElementById("composer")?.focus(),
    },
  ]);

  useEffect(() => {
    if (state.summary) setLastChat(session.id);
    else if (state.phase === "missing" && lastChat() === session.id) setLastChat(null);
  }, [session.id, state.summary, state.phase]);
  useSpoken(runs, lastAnswer?.metadata?.state ?? null);
  useFragment(session, messages.length > 0, stick.release);

  if (state.phase === "missing") {
    return (
      <main className="main">
        <div className="empty">
          <h2>There is no such chat</h2>
          <p>It was deleted, or the address is wrong.</p>
          <Link href="/chat" className="btn">
            Open the chats
          </Link>
        </div>
      </main>
    );
  }

  return (
    <main className="main">
      <ChatBar state={state} isNew={isNew} onSearch={() => setSearching(true)} />
      {searching && !isNew && <InChatSearch session={session} onClose={() => setSearching(false)} onReveal={stick.release} />}
      {isOutOfReach && (
        <div className="notice wait" role="status">
          <StateGlyph state="running" />
          <span>Connection lost. The answer goes on; joining it again…</span>
        </div>
      )}
      <div className="scroll talk-scroll" ref={scroller} role="log" aria-label="Conversation" aria-live="off" tabIndex={0}>
        <div className="talk" ref={content}>
          {state.phase === "loading" && <Skeletons count={4} what="the chat" />}
          {state.phase === "failed" && (
            <div className="empty" role="alert">
              <h2>This chat could not be loaded</h2>
              <p>{state.failure}</p>
              <button type="button" className="btn" onClick={() => void session.open()}>
                <Icon name="retry" />
                Try again
              </button>
            </div>
          )}
          {state.phase === "ready" && messages.length === 0 && !runs && (
            <Welcome onAsk={(words) => void send(words)} workspaceId={state.summary?.workspaceId ?? workspaceId} />
          )}
          <HoldPlace first={messages[0]?.id} hasOlder={hasOlder} scroller={scroller}>
            {hasOlder && <Older of={session} first={messages[0]?.id} scroller={scroller} />}
            <Told value={session.activities}>
              <Transcript messages={messages} isRunning={runs} isArchived={isArchived} actions={actions} />
            </Told>
          </HoldPlace>
          {runs && messages.at(-1)?.role === "user" && <Waiting />}
          {state.hasNewer && (
            <button type="button" className="btn more" onClick={() => void attempt(session.loadNewer())}>
              Show what came after
            </button>
          )}
        </div>
      </div>
      <div className="composer-place">
        {(!stick.isPinned || state.hasNewer) && messages.length > 0 && (
          <button
            type="button"
            className="btn pill"
            onClick={async () => {
              await attempt(session.toNewest());
              stick.pin();
            }}
          >
            {runs ? "New text" : "To the end"}
            <Icon name="down" />
          </button>
        )}
        <Composer
          text={text}
          onText={write}
          onSend={() => {
            if (send(text)) write("");
          }}
          onStop={stop}
          isRunning={runs}
          isStopping={state.isStopping}
          blocked={blocked}
          model={model}
          onModel={(chosen) => {
            setModel(chosen);
            keepModel(own, chosen);
          }}
          workspaceId={state.summary?.workspaceId ?? workspaceId}
          onWorkspace={state.summary || runs ? null : setWorkspaceId}
          notice={
            <>
              {state.refused && (
                <div className="remark fail" role="alert">
                  <Icon name="alert" />
                  <span className="grow">
                    {state.refused.sentence}
                    {state.refused.isEdit && " Your new wording is in the field below."}
                  </span>
                  <button type="button" className="btn plain dense" onClick={() => session.dismissRefusal()}>
                    Dismiss
                  </button>
                </div>
              )}
              <ModelNotice />
            </>
          }
        />
      </div>
    </main>
  );
}

/** Between the question and the first sign of an answer. */
function Waiting() {
  return (
    <div className="turn answer">
      <div className="event first last">
        <span className="dot">
          <StateGlyph state="running" />
        </span>
        <p className="stamp is-live">
          The orchestrator reads your message… <Elapsed />
        </p>
      </div>
    </div>
  );
}

/** One polite status region speaks at edges; tokens are never announced. */
function useSpoken(runs: boolean, ending: string | null): void {
  const before = useRef(runs);
  useEffect(() => {
    const region = document.getElementById("spoken");
    if (!region || before.current === runs) return;
    before.current = runs;
    const ends: Record<string, string> = { failed: "The answer failed", stopped: "Stopped", interrupted: "Interrupted" };
    region.textContent = runs ? "The orchestrator answers" : (ends[ending ?? ""] ?? "Answer complete");
  }, [runs, ending]);
}

/** Open the chat where `#m-<id>` points, also when the same place is asked for again. */
function useFragment(session: ChatSession, hasMessages: boolean, release: () => void): void {
  const target = useHash();
  useEffect(() => {
    if (target.hash.startsWith("#m-") && hasMessages) void attempt(show(session, target.hash.slice(3), release));
  }, [session, target, hasMessages, release]);
}
