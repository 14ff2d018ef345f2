import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { Link, useLocation } from "wouter";
import { events } from "../api/events";
import { useCommands } from "../app/commands";
import { HoldPlace, Older } from "../chat/Older";
import { draft, keepDraft } from "../chat/drafts";
import { mark } from "../chat/show";
import { useStick } from "../chat/useStick";
import type { ChannelMessage, ChannelView } from "../contracts";
import { deleteSoon } from "../editing/deleteSoon";
import { useMove } from "../tasks/useMove";
import { Icon } from "../ui/Icon";
import { Skeletons } from "../ui/Skeletons";
import { attempt } from "../ui/attempt";
import { useHash } from "../ui/useHash";
import { useTitle } from "../ui/useTitle";
import { visible } from "../ui/visible";
import { Explained } from "./Explained";
import { Log } from "./Log";
import type { PostActions } from "./Post";
import { Waiting } from "./Waiting";
import { Writing } from "./Writing";
import { type ChannelLog, logOf, noteMessage } from "./channelLog";
import { type Unsent, outboxOf } from "./outbox";
import { editMessage, pathOf } from "./queries";
import { useSeen } from "./useSeen";
import { type Unread, excerptOf } from "./words";

// So many before those that are unread are shown with them.
const BEFORE_UNREAD = 10;
// Above the line behind which all is new so much of what was read stays in sight.
const ABOVE_NEW_PX = 72;

/** A channel, or one thread of it: what was written, as it is written, and where one writes. */
export function ChannelScreen({ channel, threadId }: { channel: ChannelView; threadId: string | null }) {
  const [, navigate] = useLocation();
  const isThread = threadId !== null;
  const log = useMemo(() => logOf(channel.id, threadId), [channel.id, threadId]);
  const state = useSyncExternalStore(log.watch, log.snapshot);
  const outbox = useMemo(() => outboxOf(channel.id, noteMessage), [channel.id]);
  const unsent = useSyncExternalStore(outbox.watch, outbox.snapshot).filter(({ post }) => !isThread || post.threadId === threadId);
  const [unread] = useState<Unread | null>(() => (channel.unread > 0 && !isThread ? { after: channel.lastReadSeq, upTo: channel.lastSeq } : null));
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const stick = useStick(scroller, content);
  const { items, phase, previousSeq, hasNewer } = state;
  const [text, write] = useDraft(draftOf(channel.id, threadId));
  const [workspaceId, setWorkspaceId] = useState<string | null>(null);
  const [leaving, setLeaving] = useState<ReadonlySet<string>>(new Set());

  useEffect(() => log.follow(unread ? unread.upTo - unread.after + BEFORE_UNREAD : 0), [log, unread]);
  // What could not be loaded is asked for again when popagent is back.
  useEffect(() => events.hear(({ kind }) => kind === "resync" && log.state.phase === "failed" && void log.open()), [log]);
  // What has arrived after all, though nobody answered.
  useEffect(() => {
    for (const { id } of unsent) if (items.some((each) => each.id === id)) outbox.drop(id);
  }, [outbox, unsent, items]);
  useSeen(channel.id, scroller, items, phase === "ready" && !isThread);
  useSpoken(log);
  useMove(scroller);
  useTitle(isThread ? `Thread, ${channel.title}` : channel.title);
  useBeginning(scroller, phase === "ready", stick.release);
  useLinked(log, phase === "ready", stick.release);
  useCommands([
    { id: "channel write", title: isThread ? "Answer in this thread" : `Write in ${channel.title}`, group: "Do", keys: "n", run: focus },
    { id: "channel composer", title: "To the composer", group: "Go to", keys: "escape", inPalette: false, run: focus },
  ]);

  const threadOf = useCallback((message: ChannelMessage) => `/channels/${channel.id}/${message.threadId ?? message.id}`, [channel.id]);
  const actions = useMemo<PostActions>(
    () => ({
      threadOf,
      answer: (message) => (isThread ? focus() : navigate(threadOf(message))),
      edit: (message, body) => void attempt(editMessage(message, body)),
      remove: (message) => {
        const back = () => setLeaving((before) => new Set([...before].filter((id) => id !== message.id)));
        setLeaving((before) => new Set([...before, message.id]));
        deleteSoon({ path: pathOf(message), name: excerptOf(message), back, gone: () => {} });
      },
    }),
    [isThread, navigate, threadOf],
  );

  const send = (asks: boolean) => {
    outbox.send({ body: text.trim(), ...(threadId && { threadId }), ...(asks && workspaceId && { workspaceId }) });
    write("");
    stick.pin();
    void attempt(log.toNewest());
  };
  const takeBack = (back: Unsent) => {
    outbox.drop(back.id);
    const { body, threadId: of = null } = back.post;
    if (of === threadId) return write(text ? `${body}\n\n${text}` : body);
    keepDraft(draftOf(channel.id, of), body);
    navigate(`/channels/${channel.id}/${of}`);
  };

  if (phase === "missing") return <Missing channel={channel} isThread={isThread} />;
  const isBlank = phase === "ready" && items.length === 0 && unsent.length === 0;
  return (
    <main className="main">
      <header className="bar">
        {isThread ? (
          <Link href={`/channels/${channel.id}`} className="btn plain square" aria-label={`All of ${channel.title}`}>
            <Icon name="left" />
          </Link>
        ) : (
          <Link href="/channels" className="btn plain square only-phone channel-back" aria-label="All channels">
            <Icon name="left" />
          </Link>
        )}
        <h1 className="cut">{isThread ? "Thread" : visible(channel.title)}</h1>
        {isThread && <span className="faint small">{visible(channel.title)}</span>}
        <Link href="/channels/settings" className="btn plain dense square end" aria-label="Who answers here" title="Who answers here">
          <Icon name="settings" />
        </Link>
      </header>
      <div className="scroll talk-scroll" ref={scroller} role="log" aria-label={isThread ? "Thread" : visible(channel.title)} aria-live="off" tabIndex={0}>
        <div className="talk channel-log" ref={content}>
          {phase === "loading" && <Skeletons count={4} what="what was written" className="block" />}
          {phase === "failed" && (
            <div className="empty" role="alert">
              <h2>What was written could not be loaded</h2>
              <p>{state.failure}</p>
              <button type="button" className="btn" onClick={() => void log.open()}>
                <Icon name="retry" />
                Try again
              </button>
            </div>
          )}
          {isBlank && <Explained title={visible(channel.title)} onTake={(words) => write(words, true)} />}
          <HoldPlace first={items[0]?.id} hasOlder={previousSeq !== null} scroller={scroller}>
            {previousSeq !== null && <Older of={log} first={items[0]?.id} scroller={scroller} />}
            <Log items={items} leaving={leaving} unread={unread} isThread={isThread} actions={actions} />
          </HoldPlace>
          {hasNewer && (
            <button type="button" className="btn more" onClick={() => void attempt(log.loadNewer())}>
              Show what came after
            </button>
          )}
          {phase === "ready" && <Waiting outbox={outbox} items={unsent} onBack={takeBack} />}
        </div>
      </div>
      <div className="composer-place">
        {(!stick.isPinned || hasNewer) && items.length > 0 && (
          <button
            type="button"
            className="btn pill"
            onClick={async () => {
              await attempt(log.toNewest());
              stick.pin();
            }}
          >
            To the newest
            <Icon name="down" />
          </button>
        )}
        <Writing
          label={isThread ? "Answer in this thread" : `Write in ${channel.title}`}
          placeholder={isThread ? "Answer in this thread. @ asks an agent." : `Write in ${visible(channel.title)}. @ asks an agent.`}
          text={text}
          workspaceId={workspaceId}
          onText={write}
          onWorkspace={setWorkspaceId}
          onSend={send}
        />
      </div>
    </main>
  );
}

function focus(): void {
  document.getElementById("composer")?.focus();
}

function draftOf(channelId: string, threadId: string | null): string {
  return ["channel", channelId, ...(threadId === null ? [] : [threadId])].join("/");
}

/** What is written and not sent stays on this device. */
function useDraft(name: string): [string, (text: string, isGiven?: boolean) => void] {
  const [text, setText] = useState(() => draft(name));
  const write = useCallback(
    (value: string, isGiven = false) => {
      setText(value);
      keepDraft(name, value);
      if (isGiven) focus();
    },
    [name],
  );
  return [text, write];
}

/** One polite status region says that somebody else wrote. */
function useSpoken(log: ChannelLog): void {
  useEffect(
    () =>
      log.hear(({ authorKind, authorName }, isNew) => {
        const region = document.getElementById("spoken");
        if (region && isNew && authorKind !== "user") region.textContent = `${authorName} wrote`;
      }),
    [log],
  );
}

/** Begin where what is new begins, if its end would push that out of sight. */
function useBeginning(scroller: RefObject<HTMLDivElement | null>, isReady: boolean, release: () => void): void {
  useLayoutEffect(() => {
    const box = scroller.current;
    const line = box?.querySelector<HTMLElement>(".new-here");
    if (!isReady || !box || !line) return;
    const top = line.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
    if (box.scrollHeight - top + ABOVE_NEW_PX <= box.clientHeight) return;
    release();
    box.scrollTop = top - ABOVE_NEW_PX;
  }, [scroller, isReady, release]);
}

/** Open it where `#<seq>` points. */
function useLinked(log: ChannelLog, isReady: boolean, release: () => void): void {
  const target = useHash();
  useEffect(() => {
    const [, seq] = /^#(\d+)$/.exec(target.hash) ?? [];
    if (!isReady || seq === undefined) return;
    const show = async () => {
      if (!(await log.reveal(Number(seq)))) throw new Error("That message is not here.");
      const found = log.state.items.find((each) => each.seq === Number(seq));
      if (found) mark(found.id, release);
    };
    void attempt(show());
  }, [log, isReady, target, release]);
}

function Missing({ channel, isThread }: { channel: ChannelView; isThread: boolean }) {
  return (
    <main className="main">
      <div className="empty">
        <h2>{isThread ? "There is no such thread" : "There is no such channel"}</h2>
        <p>The address may be wrong.</p>
        <Link href={isThread ? `/channels/${channel.id}` : "/channels"} className="btn">
          {isThread ? `Open ${visible(channel.title)}` : "See all channels"}
        </Link>
      </div>
    </main>
  );
}
