import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { ApiError, isAway, query } from "../api/client";
import { useCommands } from "../app/commands";
import { knownSession, sessionsQuery } from "../app/queries";
import type { TraceView } from "../contracts";
import { Dialog } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import { Skeletons } from "../ui/Skeletons";
import { type State, StateGlyph } from "../ui/StateGlyph";
import { WIDE, useMedia } from "../ui/media";
import { clock, count, duration, plural } from "../ui/words";
import { useTitle } from "../ui/useTitle";
import { useNow } from "../ui/useNow";
import { SpanFacts, TraceFacts } from "./Facts";
import { TraceLogs } from "./TraceLogs";
import { stateWord } from "./stateWords";
import { Waterfall } from "./Waterfall";
import { type SeenTrace, isRunning, storeTrouble, traceQuery } from "./queries";
import { stateOfTrace } from "./spans";
import { treeOf } from "./waterfall";

const TRACE_ID = /^[0-9a-f]{32}$/;

/** One trace: its waterfall or its logs, and the facts of a chosen span. `span` and `tab` lie in the address. */
export function TraceScreen({ id }: { id: string }) {
  const isId = TRACE_ID.test(id);
  const seen = useQuery({ ...traceQuery(id), enabled: isId });
  if (seen.data) return <Trace seen={seen.data} trouble={seen.failureReason} at={seen.dataUpdatedAt} />;
  return (
    <main className="main">
      <header className="bar">
        <Back />
        <h1>Trace</h1>
      </header>
      {!isId || seen.isError || (seen.failureReason && isAway(seen.failureReason)) ? (
        <Missing error={isId ? (seen.failureReason ?? seen.error) : null} asking={seen.isFetching} again={() => void seen.refetch()} />
      ) : (
        <Skeletons count={9} what="the trace">
          {seen.failureCount > 0 && <p className="dim">Not stored yet; looking again…</p>}
        </Skeletons>
      )}
    </main>
  );
}

function Back() {
  return (
    <Link href="/observe" className="btn plain square" aria-label="All traces" title="All traces">
      <Icon name="left" />
    </Link>
  );
}

function Missing({ error, asking, again }: { error: unknown; asking: boolean; again: () => void }) {
  // Without an error nothing was asked: the address names no trace.
  const gone = error === null || (error instanceof ApiError && error.status === 404);
  return (
    <div className="empty" role="alert">
      <h2>{gone ? "This trace is not here" : storeTrouble(error)}</h2>
      <p>
        {gone
          ? "It is older than what is kept, or it was never stored."
          : "Turns do not need the store of traces. What they do meanwhile is shown once it is back."}
      </p>
      <div className="line">
        {error !== null && (
          <button type="button" className="btn" disabled={asking} onClick={again}>
            {asking ? "Asking…" : "Ask again"}
          </button>
        )}
        <Link href="/observe" className={error === null ? "btn" : "btn plain"}>
          All traces
        </Link>
      </div>
    </div>
  );
}

function Trace({ seen, trouble, at }: { seen: SeenTrace; trouble: Error | null; at: number }) {
  const { trace, aheadMs } = seen;
  const [, navigate] = useLocation();
  const search = new URLSearchParams(useSearch());
  const chosen = search.get("span");
  const tab = search.get("tab") === "logs" ? "logs" : null;
  const isWide = useMedia(WIDE);
  const pushed = useRef(false);
  useInfiniteQuery(sessionsQuery({ q: "", workspaceId: null, archived: false }));
  const tree = useMemo(() => treeOf(trace.spans), [trace]);
  const nowMs = useNow(isRunning(trace)) + aheadMs - tree.beganAt;
  const node = chosen ? tree.nodes.get(chosen) : undefined;

  const go = useCallback(
    (change: { span?: string | null; tab?: "logs" | null }, replace: boolean) =>
      navigate(`/observe/traces/${trace.traceId}${query({ span: chosen, tab, ...change })}`, { replace }),
    [navigate, trace.traceId, chosen, tab],
  );
  const choose = useCallback(
    (span: string) => {
      // A sheet is closed by Back; a side is only looked at.
      const opens = !isWide && chosen === null;
      if (opens) pushed.current = true;
      go({ span, tab: null }, !opens);
    },
    [go, isWide, chosen],
  );
  const close = () => {
    if (pushed.current) history.back();
    else go({ span: null }, true);
    pushed.current = false;
  };
  useCommands([
    {
      id: "trace tab",
      title: tab ? "Show the waterfall" : "Show the logs of this trace",
      group: "Do",
      run: () => go({ tab: tab ? null : "logs" }, true),
    },
  ]);

  const facts = node ? (
    <SpanFacts node={node} nowMs={nowMs} trace={trace} />
  ) : (
    <TraceFacts trace={trace} tree={tree} nowMs={nowMs} />
  );
  return (
    <main className="main">
      <header className="bar">
        <Back />
        <Title trace={trace} />
        <Summary trace={trace} nowMs={nowMs} />
        {trace.sessionId && (
          <Link href={`/chat/${trace.sessionId}`} className="btn plain dense" aria-label="Open chat">
            <Icon name="chat" />
            <span className="trace-chat">Open chat</span>
          </Link>
        )}
      </header>
      {trouble && (
        <div className="notice wait" role="alert">
          <Icon name="alert" />
          <span>
            {storeTrouble(trouble)} This is what was known at{" "}
            {clock(new Date(at).toISOString())}.
          </span>
        </div>
      )}
      <div className="trace-filters">
        <div className="segments" role="group" aria-label="Show">
          <button type="button" aria-pressed={tab === null} onClick={() => go({ tab: null }, true)}>
            Waterfall
          </button>
          <button type="button" aria-pressed={tab !== null} onClick={() => go({ tab: "logs", span: null }, true)}>
            Logs <span className="faint">{trace.logs.length}</span>
          </button>
        </div>
        {trace.truncated && (
          <span className="small is-wait">
            Cut: the first {plural(trace.spans.length, "span")} of {count(trace.spanCount)} and {plural(trace.logs.length, "log record")}{" "}
            are shown.
          </span>
        )}
      </div>
      <div className="trace-columns">
        {tab ? (
          <TraceLogs trace={trace} tree={tree} onChoose={choose} />
        ) : (
          <Waterfall tree={tree} running={isRunning(trace)} nowMs={nowMs} chosen={node?.id ?? null} onChoose={choose} />
        )}
        {isWide && (
          <aside className="side" aria-label={node ? "Chosen span" : "This trace"}>
            {node && <Close onClick={close} />}
            {facts}
          </aside>
        )}
      </div>
      {!isWide && node && (
        <Dialog label={`Facts of ${node.title}`} className="side-sheet" onClose={close}>
          <div className="inside">
            <Close onClick={close} />
            {facts}
          </div>
        </Dialog>
      )}
    </main>
  );
}

function Close({ onClick }: { onClick: () => void }) {
  return (
    <button type="button" className="btn plain dense square side-close" aria-label="Close" title="Close" onClick={onClick}>
      <Icon name="close" />
    </button>
  );
}

const CHIPS: Partial<Record<State, string>> = { running: "live", failed: "fail", interrupted: "wait" };

function Title({ trace }: { trace: TraceView }) {
  const chat = trace.sessionId ? knownSession(trace.sessionId) : null;
  const title = chat?.title || trace.name;
  const state = stateOfTrace(trace);
  useTitle(title);
  return (
    <>
      <h1 className="cut">{title}</h1>
      <span className={`chip ${CHIPS[state] ?? ""}`}>
        <StateGlyph state={state} />
        {stateWord(state)}
      </span>
    </>
  );
}

function Summary({ trace, nowMs }: { trace: TraceView; nowMs: number }) {
  const services = new Set(trace.spans.map((span) => span.service)).size;
  const tokens = trace.inputTokens + trace.outputTokens;
  const words = [
    duration(trace.durationMs ?? Math.max(0, nowMs)),
    plural(services, "service"),
    plural(trace.spanCount, "span"),
    ...(tokens > 0 ? [`${count(tokens)} tokens`] : []),
  ];
  return <span className="trace-summary end xs faint not-phone">{words.join(" · ")}</span>;
}
