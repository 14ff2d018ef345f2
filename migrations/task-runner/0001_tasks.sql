-- A task is a leased row: its owner beats, everybody else leaves it alone until the lease is over.
-- `cancelling` is no state of its own here: it is `running` with a request to stop, so that one fence fits both.
create table tasks (
    id text primary key,
    state text not null default 'queued'
        check (state in ('queued', 'running', 'completed', 'failed', 'cancelled', 'dead-letter')),
    attempt integer not null default 0,
    owner uuid,
    boot_id uuid,
    lease_until timestamptz,
    run_at timestamptz not null default clock_timestamp(),
    priority integer not null default 0,
    stop_requested boolean not null default false,
    -- The state that people see.
    shown_state text not null generated always as (
        case when state = 'running' and stop_requested then 'cancelling' else state end
    ) stored,
    -- Whose work it is and in which repository: neither ever changes.
    source text not null check (source in ('user', 'self-update')),
    workspace_id text not null,
    workflow boolean not null default false,
    agent_id text,
    model text,
    session_id text,
    schedule_id text,
    -- The failed task that this one is to help; a task has one remediation at most.
    remediates text,
    -- Of the tasks with the same key one runs at a time.
    concurrency_key text,
    title text not null,
    prompt text not null check (length(prompt) <= 100000),
    max_attempts integer not null check (max_attempts >= 1),
    last_error_class text,
    last_error text check (length(last_error) <= 1000),
    explanation text,
    dead_lettered_at timestamptz,
    interrupted_at timestamptz,
    -- Of the attempt whose start was told; a runner may be gone before it told anything.
    started_attempt integer not null default 0,
    turn_id text,
    trace_id text,
    output text not null default '',
    excerpt text not null default '' check (length(excerpt) <= 500),
    resolution text,
    version bigint not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    check ((state = 'running') = (owner is not null and lease_until is not null)),
    check (state <> 'dead-letter' or (dead_lettered_at is not null and explanation is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);

create unique index tasks_remediation on tasks (remediates) where remediates is not null;
create unique index tasks_one_running on tasks (concurrency_key) where state = 'running' and concurrency_key is not null;
create index tasks_running on tasks (lease_until) where state = 'running';
-- The pulse asks whether anything is due.
create index tasks_queued on tasks (priority desc, run_at, id) where state = 'queued';
-- A claim takes the first of each workspace in turn, and asks when the workspace was last served.
create index tasks_waiting on tasks (workspace_id, priority desc, run_at, id) where state = 'queued';
create index tasks_served on tasks (workspace_id, started_at desc) where started_at is not null;
-- Lists, newest first: each state by itself, all of them merged; everywhere, of a workspace, of a schedule.
create index tasks_by_state on tasks (shown_state, created_at desc, id desc);
create index tasks_by_workspace on tasks (workspace_id, shown_state, created_at desc, id desc);
create index tasks_by_schedule on tasks (schedule_id, shown_state, created_at desc, id desc)
    where schedule_id is not null;

-- The transcript, in a table of its own so that no list ever reads it; the newest 256 records of each task.
-- `revision` rises with every write, so that a follower finds the text that grew.
create table task_activity (
    task_id text not null references tasks (id) on delete cascade,
    seq bigint not null,
    revision bigint not null,
    attempt integer not null,
    body json not null,
    size integer not null,
    at timestamptz not null default clock_timestamp(),
    primary key (task_id, seq)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- Written, under the fence, before every tool call that may have an effect: no row, no call.
create table task_intents (
    task_id text not null references tasks (id) on delete cascade,
    attempt integer not null,
    step integer not null,
    call_id text not null,
    tool text not null,
    arguments text not null check (length(arguments) <= 8000),
    created_at timestamptz not null default clock_timestamp(),
    primary key (task_id, attempt, step, call_id)
);

-- Which runners there were lately: that a suite began after an attempt did says that the suite of the attempt is gone.
-- A runner that was started without a suite is a boot of its own and says nothing of others.
create table runners (
    owner uuid primary key,
    boot_id uuid not null,
    since timestamptz not null default clock_timestamp(),
    seen_at timestamptz not null default clock_timestamp()
);
