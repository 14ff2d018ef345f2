-- Channels that everybody reads. Two counters: `last_seq` numbers messages without a hole; `revision` numbers changes of
-- messages, so that whoever follows asks for what came after one. Both rise under the lock of the channel's row, so that a
-- reader who has seen a number has seen all before it.
create table channels (
    id text primary key,
    title text not null check (length(title) between 1 and 120),
    last_seq bigint not null default 0,
    revision bigint not null default 0,
    created_at timestamptz not null default clock_timestamp()
);
insert into channels (id, title) values ('general', '#general');

-- What posts start: one row for all channels. Without an agent the orchestrator answers.
create table channel_settings (
    is_only boolean primary key default true check (is_only),
    auto_reply boolean not null,
    agent_id text references agents (id),
    revision integer not null,
    updated_at timestamptz not null default clock_timestamp()
);
insert into channel_settings (auto_reply, revision) values (false, 0);

-- A message keeps its place when it is deleted, and nothing else. `run_…` is the task that it started, which has the
-- message's id; `task_…` is the task that it tells of.
create table channel_messages (
    id text primary key,
    channel_id text not null references channels (id),
    seq bigint not null,
    revision bigint not null,
    thread_id text references channel_messages (id),
    author_kind text not null check (author_kind in ('user', 'agent', 'system')),
    author_id text not null,
    author_name text not null,
    body text not null check (length(body) <= 40000),
    mentions text[] not null default '{}',
    workspace_id text,
    run_state text check (run_state in (
        'waiting', 'queued', 'running', 'cancelling', 'completed', 'failed', 'cancelled', 'dead-letter'
    )),
    run_agent_id text,
    run_version integer not null default -1,
    run_note text not null default '',
    run_tries integer not null default 0,
    run_at timestamptz,
    task_id text,
    task_attempt integer,
    task_kind text check (task_kind in ('completed', 'failed', 'dead-letter')),
    edited_at timestamptz,
    deleted_at timestamptz,
    created_at timestamptz not null default clock_timestamp(),
    check ((task_id is null) = (task_attempt is null) and (task_id is null) = (task_kind is null))
);
-- History, page by page, of the channel and of one thread.
create unique index channel_messages_by_seq on channel_messages (channel_id, seq);
create index channel_messages_by_thread on channel_messages (thread_id, seq) where thread_id is not null;
-- Who follows asks for what changed.
create unique index channel_messages_by_revision on channel_messages (channel_id, revision);
-- What a task has to say of an attempt is posted once, however often it is told.
create unique index channel_messages_of_task on channel_messages (task_id, task_attempt, task_kind)
    where task_id is not null;
-- `run_at` is when the run is looked after next. Asked each second: whose task is still to be made.
create index channel_messages_waiting on channel_messages (run_at) where run_state = 'waiting';
-- Of which task nothing was heard for minutes.
create index channel_messages_running on channel_messages (run_at) where run_state in ('queued', 'running', 'cancelling');
-- Posts of the last minute are counted.
create index channel_messages_posted on channel_messages (created_at) where author_kind = 'user';
-- A workspace that the history refers to cannot be deleted.
create index channel_messages_of_workspace on channel_messages (workspace_id) where workspace_id is not null;

-- How far somebody has read.
create table channel_cursors (
    channel_id text not null references channels (id),
    reader text not null,
    last_read_seq bigint not null,
    primary key (channel_id, reader)
);
