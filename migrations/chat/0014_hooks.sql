-- Hooks of the operator, read with the snapshot of every run. The secret that requests are signed with is the row
-- ('hooks', id) of secrets.
create table hooks (
    id text primary key,
    name text not null check (length(name) between 1 and 120),
    event text not null check (event in (
        'SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'Stop', 'SessionEnd'
    )),
    matcher text not null check (length(matcher) between 1 and 200),
    kind text not null check (kind in ('http')),
    url text not null check (length(url) between 1 and 2000),
    timeout_ms integer not null check (timeout_ms between 100 and 30000),
    on_failure text not null check (on_failure in ('allow', 'block')),
    order_index integer not null check (order_index between 0 and 10000),
    enabled boolean not null,
    revision integer not null,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp()
);

-- What hooks were told and what they answered. Read in the order of seq, never of the clock; a turn's runs are in the
-- order in which they ended, and those of one event in the order of the hooks. It goes with its session.
create table hook_runs (
    seq bigint generated always as identity primary key,
    id text not null unique,
    session_id text not null references sessions (id) on delete cascade,
    turn_id text,
    trace_id text,
    event text not null,
    hook_id text not null,
    hook_name text not null,
    subject text not null check (length(subject) <= 200),
    decision text check (decision in ('allow', 'deny')),
    reason text not null check (length(reason) <= 2000),
    status text not null check (status in ('ok', 'denied', 'timeout', 'error', 'skipped')),
    input json not null check (octet_length(input::text) <= 16384),
    output text not null check (octet_length(output) <= 16384),
    duration_ms integer not null,
    created_at timestamptz not null default clock_timestamp()
);

-- Read by session, page by page, and cut to the newest 10,000 of each.
create index hook_runs_by_session on hook_runs (session_id, seq);
-- The chore drops what is older than thirty days.
create index hook_runs_by_time on hook_runs (created_at);
