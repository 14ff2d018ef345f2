import { useInfiniteQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Link } from "wouter";
import { api, query } from "../api/client";
import type { HookRunList, HookRunView } from "../contracts";
import { Icon } from "../ui/Icon";
import { Loading } from "../settings/Loading";
import { visible } from "../ui/visible";
import { duration, exactly } from "../ui/words";
import { EVENTS } from "./events";
import { verdict } from "./verdict";
import "./runs.css";

const PAGE = 50;

/** What hooks did in one turn, in the order in which they ran. */
export function HookRuns({ sessionId, turnId }: { sessionId: string; turnId: string }) {
  const runs = useInfiniteQuery({
    queryKey: ["hook-runs", sessionId, turnId],
    queryFn: ({ pageParam, signal }) => api.get<HookRunList>(`/api/sessions/${sessionId}/hooks${query({ turnId, limit: PAGE, cursor: pageParam })}`, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
    // The last runs may be written down a moment after the answer.
    staleTime: 0,
  });
  return (
    <section className="hook-runs" aria-label="Hooks of this turn">
      <Loading query={runs} what="what hooks did">
        {({ pages }) => {
          const items = pages.flatMap((page) => page.items);
          return items.length === 0 ? (
            <p className="small faint">Nothing of it is kept any more.</p>
          ) : (
            <ol>
              {items.map((run) => (
                <Run key={run.id} run={run} />
              ))}
            </ol>
          );
        }}
      </Loading>
      {runs.hasNextPage && (
        <button type="button" className="btn plain dense" disabled={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
          {runs.isFetchingNextPage ? "Loading…" : "Show more"}
        </button>
      )}
      <Link href="/settings/hooks" className="link small">
        All hooks
      </Link>
    </section>
  );
}

/** One line; what was refused or failed says why at once, the rest opens. */
function Run({ run }: { run: HookRunView }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const { words, tone } = verdict(run);
  const says = run.reason && run.status !== "skipped";
  return (
    <li>
      <button type="button" className="tool run" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        <Icon name={tone === "ok" ? "check" : tone === "" ? "hook" : "alert"} className={tone === "ok" || tone === "" ? "" : `is-${tone}`} />
        <b className="cut">{visible(run.hookName)}</b>
        <span className="cut run-what">
          {EVENTS[run.event].title}
          {run.subject && <span className="mono"> {visible(run.subject)}</span>}
        </span>
        <span className="xs faint nowrap">
          <span className={tone === "ok" || tone === "" ? "" : `is-${tone}`}>{words}</span>
          {run.status !== "skipped" && ` · ${duration(run.durationMs)}`}
        </span>
        <Icon name={open ? "down" : "right"} />
      </button>
      {says && <p className={`small is-${tone || "dim"}`}>{visible(run.reason)}</p>}
      <div id={id} hidden={!open} className="tool-body">
        {open && <Told run={run} />}
      </div>
    </li>
  );
}

function Told({ run }: { run: HookRunView }) {
  return (
    <>
      <p className="xs faint">
        {run.event}, {exactly(run.at)}
        {run.status === "skipped" && `. ${run.reason}`}{" "}
        <Link href={`/settings/hooks/${run.hookId}`} className="link nowrap">
          Open the hook
        </Link>
      </p>
      <h4>What it was told</h4>
      <pre className="well" tabIndex={0}>
        {visible(JSON.stringify(run.input, null, 2))}
      </pre>
      <h4>What it answered</h4>
      {run.output ? (
        <pre className="well" tabIndex={0}>
          {visible(run.output)}
        </pre>
      ) : (
        <p className="small faint">Nothing.</p>
      )}
    </>
  );
}
