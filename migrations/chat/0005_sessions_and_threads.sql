-- A thread is a tree of messages; a session shows the branch that ends at its thread's head.
create table threads (
    id text primary key,
    kind text not null check (kind in ('session', 'delegate', 'task')),
    resource text not null,
    head_id text,
    next_seq bigint not null default 1,
    created_at timestamptz not null default clock_timestamp()
);

-- Message ids come from clients too, so they are unique only within their thread.
create table messages (
    thread_id text not null references threads (id) on delete cascade,
    id text not null,
    seq bigint not null,
    parent_id text,
    role text not null check (role in ('user', 'assistant')),
    -- json, not jsonb: what a person reopens is what was streamed, to the order of keys.
    parts json not null,
    metadata json not null,
    token_count integer not null,
    sealed_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    primary key (thread_id, id),
    unique (thread_id, seq),
    foreign key (thread_id, parent_id) references messages (thread_id, id)
);

-- The id of a session is the id of its thread (CH-8).
create table sessions (
    id text primary key references threads (id),
    title text not null,
    title_locked boolean not null,
    workspace_id text not null references workspaces (id),
    archived_at timestamptz,
    -- Rises by rename, archive and shorten; what a person edits is checked against it (SE-2).
    revision integer not null,
    -- Rises with every change, so that hearers of events can drop an older one.
    version bigint not null,
    running_turn_id text,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);

-- The list is read newest first, active or archived, sometimes for one workspace.
create index sessions_by_activity on sessions (updated_at desc, id desc);
create index sessions_by_workspace on sessions (workspace_id, updated_at desc);
