import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { sentence } from "../api/client";
import { useCommands } from "../app/commands";
import { nameOf, sessionsQuery, workspacesQuery } from "../app/queries";
import type { SessionItem } from "../contracts";
import { Icon } from "../ui/Icon";
import { useDebounced } from "../ui/useDebounced";
import { Menu } from "../ui/Menu";
import { Skeletons } from "../ui/Skeletons";
import { StateGlyph } from "../ui/StateGlyph";
import { exactly, period, when } from "../ui/words";
import { Marked } from "./Marked";
import { SessionMenu } from "./SessionMenu";

const SEARCH_MS = 200;

/** Every chat, newest activity first; searched by title and text. Its filters live in the address. */
export function SessionList({ openId }: { openId: string | null }) {
  const [params, setParams] = useSearchParams();
  const [, navigate] = useLocation();
  const workspaceId = params.get("workspace");
  const archived = params.get("show") === "archived";
  const [typed, setTyped] = useState(params.get("q") ?? "");
  const [searching, setSearching] = useState(typed !== "");
  const q = useDebounced(typed.trim(), SEARCH_MS);
  const list = useInfiniteQuery(sessionsQuery({ q, workspaceId, archived }));
  const workspaces = useQuery(workspacesQuery).data?.items ?? [];
  const found = list.data?.pages.flatMap((page) => page.items) ?? [];
  // What runs comes first, unless something is searched.
  const items = q ? found : [...found].sort((a, b) => Number(!!b.runningTurnId) - Number(!!a.runningTurnId));
  const filter = (name: string, value: string | null) =>
    setParams(
      (before) => {
        const next = new URLSearchParams(before);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: true },
    );
  // The address follows what was typed, so that Back and a copied link find it again.
  const told = useRef(q);
  useEffect(() => {
    if (told.current === q) return;
    told.current = q;
    filter("q", q);
  });

  const step = (by: number) => {
    const at = items.findIndex((item) => item.id === openId);
    const to = items[Math.max(0, Math.min(items.length - 1, at + by))];
    if (to) navigate(`/chat/${to.id}${location.search}`);
  };
  useCommands([
    { id: "chat new", title: "New chat", group: "Do", keys: "n", run: () => navigate("/chat/new") },
    { id: "chat next", title: "Next chat", group: "Go to", keys: "j", inPalette: false, run: () => step(1) },
    { id: "chat previous", title: "Chat before", group: "Go to", keys: "k", inPalette: false, run: () => step(-1) },
    { id: "chat search", title: "Search all chats", group: "Do", run: () => setSearching(true) },
    {
      id: "chat archived",
      title: archived ? "Show active chats" : "Show archived chats",
      group: "Go to",
      run: () => filter("show", archived ? null : "archived"),
    },
  ]);

  return (
    <aside className={`pane ${openId ? "not-phone" : ""}`} aria-label="Chats">
      <header className="bar">
        <h1 className="grow">{archived ? "Archived chats" : "Chats"}</h1>
        <button
          type="button"
          className="btn dense square plain"
          aria-label="Search all chats"
          title="Search all chats"
          aria-expanded={searching}
          onClick={() => {
            setSearching(!searching);
            setTyped("");
          }}
        >
          <Icon name="search" />
        </button>
        {workspaces.length > 1 && (
          <Menu
            label="Filter by workspace"
            className={`btn dense square ${workspaceId ? "" : "plain"}`}
            items={[
              { label: "All workspaces", checked: workspaceId === null, onSelect: () => filter("workspace", null) },
              ...workspaces.map((each) => ({
                label: each.name,
                checked: each.id === workspaceId,
                onSelect: () => filter("workspace", each.id),
              })),
            ]}
          >
            <Icon name="folder" />
          </Menu>
        )}
        <Link href="/chat/new" className="btn dense square" aria-label="New chat" title="New chat (N)">
          <Icon name="plus" />
        </Link>
      </header>
      {searching && (
        <div className="list-search">
          <input
            className="input"
            type="search"
            autoFocus
            aria-label="Search titles and texts"
            placeholder="Search titles and texts"
            value={typed}
            onChange={(event) => setTyped(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Escape") return;
              event.stopPropagation();
              setTyped("");
              setSearching(false);
            }}
          />
        </div>
      )}
      {workspaceId && (
        <p className="list-filter">
          <span className="chip">
            <Icon name="folder" />
            {workspaces.find((each) => each.id === workspaceId)?.name ?? workspaceId}
          </span>
          <button type="button" className="btn plain dense" onClick={() => filter("workspace", null)}>
            Show all
          </button>
        </p>
      )}
      <div className="scroll">
        {list.isError && items.length === 0 ? (
          <div className="empty" role="alert">
            <p>{sentence(list.error)}</p>
            <button type="button" className="btn dense" onClick={() => void list.refetch()}>
              Try again
            </button>
          </div>
        ) : list.isPending ? (
          <Skeletons count={5} what="the chats" />
        ) : items.length === 0 ? (
          <Empty q={q} archived={archived} isFiltered={workspaceId !== null} />
        ) : (
          <Groups items={items} openId={openId} q={q} />
        )}
        {list.hasNextPage && <More isLoading={list.isFetchingNextPage} load={() => void list.fetchNextPage()} />}
      </div>
      <button
        type="button"
        className="pane-foot"
        onClick={() => filter("show", archived ? null : "archived")}
      >
        <Icon name={archived ? "left" : "archive"} />
        {archived ? "Active chats" : "Archived chats"}
      </button>
    </aside>
  );
}

function Groups({ items, openId, q }: { items: SessionItem[]; openId: string | null; q: string }) {
  const group = (item: SessionItem) => (q ? "Found" : item.runningTurnId ? "Active" : period(item.updatedAt));
  return (
    <ul>
      {items.map((item, index) => {
        const before = items[index - 1];
        const isFirst = !before || group(before) !== group(item);
        return (
          <li key={item.id} className="session">
            {isFirst && <h2 className="group">{group(item)}</h2>}
            <div className="row session-row" aria-current={item.id === openId ? "page" : undefined}>
              <Link
                href={`/chat/${item.id}${location.search}${item.match ? `#m-${item.match.messageId}` : ""}`}
                className="grow session-link"
                {...(item.id === openId ? { "aria-current": "page" as const } : {})}
              >
                <Mark session={item} />
                <span className="cut grow">
                  {q ? <Marked text={nameOf(item)} words={q} /> : nameOf(item)}
                </span>
                <time dateTime={item.updatedAt} title={exactly(item.updatedAt)}>
                  {when(item.updatedAt)}
                </time>
              </Link>
              <SessionMenu session={item} isOpen={item.id === openId} className="row-menu" />
            </div>
            {item.match && (
              <Link href={`/chat/${item.id}${location.search}#m-${item.match.messageId}`} className="session-match">
                <Marked text={item.match.excerpt} words={q} />
              </Link>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** What a person should know before opening it; an answer that ended well, or was stopped, needs no mark. */
function Mark({ session }: { session: SessionItem }) {
  if (session.runningTurnId) return <StateGlyph state="running" label="Running" />;
  if (session.lastTurnState === "failed") return <StateGlyph state="failed" label="The last answer failed" />;
  if (session.lastTurnState === "interrupted") return <StateGlyph state="interrupted" label="The last answer was interrupted" />;
  return null;
}

function Empty({ q, archived, isFiltered }: { q: string; archived: boolean; isFiltered: boolean }) {
  if (q) {
    return (
      <div className="empty small">
        <p>No chat has these words{isFiltered ? " in this workspace" : ""}. Try fewer of them.</p>
      </div>
    );
  }
  return (
    <div className="empty small">
      <p>
        {archived
          ? "Nothing is archived. Archiving takes a chat out of the list and keeps all of it."
          : "No chats yet."}
      </p>
      {!archived && (
        <Link href="/chat/new" className="btn primary">
          <Icon name="plus" />
          Begin one
        </Link>
      )}
    </div>
  );
}

function More({ isLoading, load }: { isLoading: boolean; load: () => void }) {
  const mark = useRef<HTMLButtonElement>(null);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    const target = mark.current;
    if (!target || isLoading) return;
    const seen = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && latest.current());
    seen.observe(target);
    return () => seen.disconnect();
  }, [isLoading]);
  return (
    <button ref={mark} type="button" className="btn plain dense more" disabled={isLoading} onClick={load}>
      {isLoading ? "Loading…" : "Show older chats"}
    </button>
  );
}
