import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Link, useLocation, useSearch } from "wouter";
import { query } from "../api/client";
import { useCommands } from "../app/commands";
import { workspacesQuery } from "../app/queries";
import { schedulesQuery } from "../schedules/queries";
import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import { useDebounced } from "../ui/useDebounced";
import { useNow } from "../ui/useNow";
import { useTitle } from "../ui/useTitle";
import { useMove } from "./useMove";
import { Explained } from "./Explained";
import { Section, Trouble, Waiting } from "./Section";
import { setDraft, useDraft } from "./draftStore";
import { BLANK, NEW, put } from "./form";
import { ACTIVE, NEEDS, type TaskState, of, tasksQuery } from "./lists";

type Wanted = { states: readonly TaskState[]; label: string; value: string };

/** In the order in which a person has to care. */
const SECTIONS: readonly Wanted[] = [
  { value: "needs", states: NEEDS, label: "Needs you" },
  { value: "running", states: ACTIVE, label: "Running" },
  { value: "queued", states: ["queued"], label: "Queued" },
  { value: "ended", states: ["completed", "cancelled"], label: "Finished" },
];
const SEARCH_MS = 250;

/** Every task, in sections; the filter lies in the address: `state`, `workspace`, `schedule`, `q`. */
export function Board() {
  const [, navigate] = useLocation();
  const search = new URLSearchParams(useSearch());
  const state = SECTIONS.find(({ value }) => value === search.get("state"))?.value ?? null;
  const narrow = { workspaceId: search.get("workspace"), scheduleId: search.get("schedule"), q: search.get("q") ?? "" };
  const address = { state, workspace: narrow.workspaceId, schedule: narrow.scheduleId, q: narrow.q };
  const go = (change: Partial<typeof address>) => navigate(`/tasks${query({ ...address, ...change })}`, { replace: true });
  const needs = useInfiniteQuery(tasksQuery(of(NEEDS, narrow)));
  const running = useInfiniteQuery(tasksQuery(of(ACTIVE, narrow)));
  const queued = useInfiniteQuery(tasksQuery(of(["queued"], narrow)));
  const ended = useInfiniteQuery(tasksQuery(of(["completed", "cancelled"], narrow)));
  const lists = [needs, running, queued, ended];
  const counts = lists.map(({ data }) => data?.pages.reduce((sum, page) => sum + page.items.length, 0) ?? 0);
  // Shown from the top on, as far as is known: what comes later moves nothing.
  const unknown = lists.findIndex(({ data }) => data === undefined);
  const isKnown = unknown < 0;
  const isNarrow = narrow.workspaceId !== null || narrow.scheduleId !== null || narrow.q !== "";
  const isBlank = isKnown && counts.every((count) => count === 0);
  const isBegun = Object.keys(useDraft(NEW)).length > 0;
  // What waits counts down, what runs counts up.
  const now = useNow((counts[1] ?? 0) + (counts[2] ?? 0) > 0);
  const list = useRef<HTMLDivElement>(null);
  useMove(list);
  useCommands([{ id: "new task", title: "New task", group: "Do", keys: "n", run: () => navigate(`/tasks/${NEW}`) }]);
  useTitle("Tasks");
  const trouble = lists.find(({ error, failureReason }) => error ?? failureReason);
  const isAsking = !trouble && (state === null ? !isKnown : lists[SECTIONS.findIndex(({ value }) => value === state)]?.data === undefined);

  return (
    <main className="main tasks">
      <header className="bar">
        <h1>Tasks</h1>
        <Search q={narrow.q} onSearch={(q) => go({ q })} />
        <Link href={`/tasks/${NEW}`} className="btn primary">
          <Icon name="plus" />
          New task
        </Link>
      </header>
      {!(isBlank && !isNarrow) && (
        <div className="task-filters">
          <div className="segments" role="group" aria-label="State">
            <button type="button" aria-pressed={state === null} onClick={() => go({ state: null })}>
              All
            </button>
            {SECTIONS.map(({ value, label }, index) => (
              <button key={value} type="button" aria-pressed={state === value} onClick={() => go({ state: value })}>
                {label}
                {value !== "ended" && (counts[index] ?? 0) > 0 && (
                  <span className="faint">
                    {counts[index]}
                    {lists[index]?.hasNextPage && "+"}
                  </span>
                )}
              </button>
            ))}
          </div>
          <WorkspaceFilter value={narrow.workspaceId} onChange={(workspace) => go({ workspace })} />
          {narrow.scheduleId !== null && <OfSchedule id={narrow.scheduleId} onClear={() => go({ schedule: null })} />}
        </div>
      )}
      <div className="scroll" ref={list}>
        {trouble && <Trouble list={trouble} />}
        {isBegun && (
          <p className="task-note small is-wait">
            A new task was begun and is <b>not given</b>.{" "}
            <Link href={`/tasks/${NEW}`} className="link">
              Go on with it
            </Link>
          </p>
        )}
        {isBlank && !isNarrow && (
          <Explained
            onTake={(prompt) => {
              setDraft(NEW, (before) => put(before, "prompt", prompt, BLANK));
              navigate(`/tasks/${NEW}`);
            }}
          />
        )}
        {isBlank && isNarrow && (
          <div className="empty">
            <h2>No task is like that</h2>
            <p>Titles are searched: the beginning of what a task was told.</p>
            <Link href="/tasks" className="btn">
              Show all
            </Link>
          </div>
        )}
        {SECTIONS.map(({ value, label, states }, index) => {
          const each = lists[index];
          const isBelow = state === null && isAsking && index > unknown;
          if (!each?.data || isBlank || isBelow || (state !== null && state !== value)) return null;
          return <Section key={value} label={label} states={states} list={each} now={now} isOnly={state === value} />;
        })}
        {isAsking && <Waiting />}
      </div>
    </main>
  );
}

function Search({ q, onSearch }: { q: string; onSearch: (q: string) => void }) {
  const [typed, setTyped] = useState(q);
  const field = useRef<HTMLInputElement>(null);
  const settled = useDebounced(typed.trim(), SEARCH_MS);
  useCommands([{ id: "find task", title: "Find a task", group: "Do", keys: "/", run: () => field.current?.focus() }]);
  const latest = useRef(onSearch);
  latest.current = onSearch;
  useEffect(() => {
    if (settled !== q) latest.current(settled);
    // The address follows what was typed, not the other way round.
  }, [settled]);
  // Another address, as of Show all: the field shows what is searched there.
  useEffect(() => setTyped((now) => (now.trim() === q ? now : q)), [q]);
  return (
    <form className="task-search end" role="search" onSubmit={(event) => event.preventDefault()}>
      <Icon name="search" />
      <input
        ref={field}
        className="input"
        type="search"
        aria-label="Search tasks"
        placeholder="Search tasks"
        autoComplete="off"
        maxLength={200}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
    </form>
  );
}

function WorkspaceFilter({ value, onChange }: { value: string | null; onChange: (id: string | null) => void }) {
  const workspaces = useQuery(workspacesQuery).data?.items ?? [];
  if (workspaces.length < 2 && value === null) return null;
  const shown = value === null ? "Any workspace" : (workspaces.find((each) => each.id === value)?.name ?? value);
  return (
    <Menu
      label={`Filter by workspace: ${shown}`}
      className="btn plain dense"
      items={[
        { label: "Any workspace", checked: value === null, onSelect: () => onChange(null) },
        ...workspaces.map((each) => ({ label: each.name, checked: each.id === value, onSelect: () => onChange(each.id) })),
      ]}
    >
      <Icon name="folder" />
      <span className="cut">{shown}</span>
      <Icon name="down" />
    </Menu>
  );
}

function OfSchedule({ id, onClear }: { id: string; onClear: () => void }) {
  const name = useQuery(schedulesQuery).data?.items.find((each) => each.id === id)?.name ?? id;
  return (
    <span className="chip task-narrowed">
      <Icon name="clock" />
      <span className="cut">{name}</span>
      <button type="button" aria-label={`Show all again, not only those of ${name}`} title="Show all" onClick={onClear}>
        <Icon name="close" />
      </button>
    </span>
  );
}
