import { useInfiniteQuery } from "@tanstack/react-query";
import { type FormEvent, useCallback, useRef, useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { query } from "../api/client";
import { useCommands } from "../app/commands";
import { client, knownSession, sessionsQuery } from "../app/queries";
import type { TraceSummary } from "../contracts";
import { Icon } from "../ui/Icon";
import { Skeletons } from "../ui/Skeletons";
import { StateGlyph } from "../ui/StateGlyph";
import { clock, count, duration, exactly, when } from "../ui/words";
import { useTitle } from "../ui/useTitle";
import { useNow } from "../ui/useNow";
import { stateInk, stateWord } from "./stateWords";
import { type TraceFilter, isRunning, pasted, storeTrouble, tracesQuery, useAfterTurns } from "./queries";
import { stateOfTrace } from "./spans";

const STATES: { value: TraceFilter["status"]; label: string }[] = [
  { value: null, label: "All" },
  { value: "running", label: "Running" },
  { value: "ok", label: "Done" },
  { value: "error", label: "Failed" },
];
const DAY_MS = 86_400_000;

/** Turns, newest first; `all` adds plain requests. The filter lies in the address: `status`, `session`, `turn`, `all`. */
export function TraceListScreen() {
  const [, navigate] = useLocation();
  const search = new URLSearchParams(useSearch());
  const status = STATES.find((state) => state.value === search.get("status"))?.value ?? null;
  const all = search.get("all");
  const filter: TraceFilter = { status, sessionId: search.get("session"), turnId: search.get("turn"), turnsOnly: all === null };
  const filtered = filter.status !== null || filter.sessionId !== null || filter.turnId !== null;
  const go = (change: Partial<Record<"status" | "session" | "turn" | "all", string | null>>) =>
    navigate(`/observe${query({ status, session: filter.sessionId, turn: filter.turnId, all, ...change })}`);

  useTitle("Observe");
  return (
    <main className="main">
      <header className="bar">
        <h1>Observe</h1>
        <Search key={filter.turnId ?? filter.sessionId} />
      </header>
      <div className="trace-filters">
        <div className="segments" role="group" aria-label="State">
          {STATES.map(({ value, label }) => (
            <button key={label} type="button" aria-pressed={value === status} onClick={() => go({ status: value })}>
              {label}
            </button>
          ))}
        </div>
        <label className="line trace-all small dim">
          <input type="checkbox" checked={all !== null} onChange={(event) => go({ all: event.target.checked ? "1" : null })} />
          Plain requests too
        </label>
        {filter.sessionId && (
          <Narrowed label={`Chat: ${knownSession(filter.sessionId)?.title || filter.sessionId}`} onClear={() => go({ session: null })} />
        )}
        {filter.turnId && <Narrowed label={`Turn: ${filter.turnId}`} onClear={() => go({ turn: null })} />}
      </div>
      <List filter={filter} filtered={filtered} />
    </main>
  );
}

function Narrowed({ label, onClear }: { label: string; onClear: () => void }) {
  return (
    <span className="chip narrowed">
      <span className="cut">{label}</span>
      <button type="button" aria-label={`Show all again, not only ${label}`} title="Show all" onClick={onClear}>
        <Icon name="close" />
      </button>
    </span>
  );
}

/** Opens a trace by its id; shows the traces of a turn or a chat by theirs. */
function Search() {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState("");
  const [error, setError] = useState("");
  const field = useRef<HTMLInputElement>(null);
  useCommands([
    { id: "find trace", title: "Find a trace by id", group: "Do", keys: "/", run: () => field.current?.focus() },
  ]);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const found = pasted(typed);
    if (!found) return setError(typed.trim() ? "This is no id of a trace, a turn or a chat." : "");
    setError("");
    if ("trace" in found) return navigate(`/observe/traces/${found.trace}`);
    try {
      const ofTurn = tracesQuery({ status: null, sessionId: null, turnId: found.id, turnsOnly: false });
      const { items } = (await client.fetchInfiniteQuery(ofTurn)).pages[0] ?? { items: [] };
      const only = items.length === 1 ? items[0] : undefined;
      if (only) navigate(`/observe/traces/${only.traceId}`);
      else navigate(`/observe${query(items.length ? { turn: found.id } : { session: found.id })}`);
    } catch (failure) {
      setError(storeTrouble(failure));
    }
  };

  return (
    <form className="trace-search end" role="search" onSubmit={(event) => void submit(event)}>
      <Icon name="search" />
      <input
        ref={field}
        className="input"
        aria-label="Id of a trace, a turn or a chat"
        placeholder="Trace, turn or chat id"
        autoComplete="off"
        spellCheck={false}
        enterKeyHint="go"
        value={typed}
        aria-invalid={error !== ""}
        aria-describedby="trace-search-error"
        onChange={(event) => {
          setTyped(event.target.value);
          setError("");
        }}
      />
      <span id="trace-search-error" className="trace-search-error" role="alert">
        {error}
      </span>
    </form>
  );
}

function List({ filter, filtered }: { filter: TraceFilter; filtered: boolean }) {
  const traces = useInfiniteQuery(tracesQuery(filter));
  // The titles of the chats; without them a row says what was asked of the door.
  useInfiniteQuery(sessionsQuery({ q: "", workspaceId: null, archived: false }));
  const { refetch } = traces;
  useAfterTurns(useCallback(() => void refetch(), [refetch]));
  const items = traces.data?.pages.flatMap((page) => page.items) ?? [];
  const now = useNow(items.some(isRunning));
  const trouble = traces.failureReason ?? traces.error;
  const list = useRef<HTMLUListElement>(null);
  const move = (by: number) => {
    const links = [...(list.current?.querySelectorAll("a") ?? [])];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
  };
  useCommands([
    { id: "next", title: "Next", group: "Do", keys: "j", inPalette: false, run: () => move(1) },
    { id: "previous", title: "Previous", group: "Do", keys: "k", inPalette: false, run: () => move(-1) },
  ]);
  const newest = items[0];

  return (
    <div className="scroll">
      {trouble && (
        <div className="notice wait" role="alert">
          <Icon name="alert" />
          <span className="grow">
            {storeTrouble(trouble)}
            {traces.data && ` This is what was known at ${clock(new Date(traces.dataUpdatedAt).toISOString())}.`}
          </span>
          <button type="button" className="btn dense" disabled={traces.isFetching} onClick={() => void refetch()}>
            {traces.isFetching ? "Asking…" : "Ask again"}
          </button>
        </div>
      )}
      {!traces.data && (trouble ? <Nothing /> : <Skeletons count={8} what="the traces" className="trace-skeleton" />)}
      {traces.data && items.length === 0 && <Empty filtered={filtered} />}
      {newest && !filtered && now - Date.parse(newest.startedAt) > DAY_MS && (
        <p className="trace-quiet">No turns in 24 h. These are older.</p>
      )}
      {items.length > 0 && (
        <>
          <div className="trace-row head" aria-hidden="true">
            <span />
            <span>What</span>
            <span>Tokens</span>
            <span>Spans</span>
            <span>Took</span>
            <span>Began</span>
          </div>
          <ul ref={list} aria-label="Traces, newest first">
            {items.map((trace) => (
              <TraceRow key={trace.traceId} trace={trace} now={now} />
            ))}
          </ul>
        </>
      )}
      {traces.hasNextPage && (
        <div className="trace-more">
          <button type="button" className="btn" disabled={traces.isFetchingNextPage} onClick={() => void traces.fetchNextPage()}>
            {traces.isFetchingNextPage ? "Loading…" : "Show older"}
          </button>
        </div>
      )}
    </div>
  );
}

function TraceRow({ trace, now }: { trace: TraceSummary; now: number }) {
  const chat = trace.sessionId ? knownSession(trace.sessionId) : null;
  const tokens = trace.inputTokens + trace.outputTokens;
  const state = stateOfTrace(trace);
  const took = trace.durationMs ?? Math.max(0, now - Date.parse(trace.startedAt));
  return (
    <li>
      <Link href={`/observe/traces/${trace.traceId}`} className="trace-row">
        <StateGlyph state={state} />
        <span className="what">
          <span className="cut strong">{chat?.title || trace.name}</span>
          <span className="cut faint">
            <span className={stateInk(state)}>{stateWord(state)}</span>
            {chat?.title ? ` · ${trace.name}` : ""} · {trace.service}
          </span>
        </span>
        <span className="figure">{tokens > 0 && <Figure value={count(tokens)} unit="tokens" />}</span>
        <span className="figure">
          <Figure value={count(trace.spanCount)} unit={trace.spanCount === 1 ? "span" : "spans"} />
        </span>
        <span className="figure took">{duration(took)}</span>
        <time dateTime={trace.startedAt} title={exactly(trace.startedAt)}>
          {when(trace.startedAt)}
        </time>
      </Link>
    </li>
  );
}

/** The unit stands in the head of the list; it is said where the head is not seen. */
function Figure({ value, unit }: { value: string; unit: string }) {
  return (
    <>
      {value}
      <span className="unit"> {unit}</span>
    </>
  );
}

function Nothing() {
  return (
    <div className="empty">
      <p>Turns do not need the store of traces. What they do meanwhile is shown here once it is back.</p>
    </div>
  );
}

function Empty({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <div className="empty">
      <h2>No trace is like that</h2>
      <p>It may be older than what is kept, or not stored yet.</p>
      <Link href="/observe" className="btn">
        Show all
      </Link>
    </div>
  ) : (
    <div className="empty">
      <h2>No turns in 24 h.</h2>
      <p>
        A turn is here as soon as it begins: every model call, every tool, and what passed between the services, on one
        clock.
      </p>
      <Link href="/chat" className="btn">
        Open the chats
      </Link>
    </div>
  );
}

