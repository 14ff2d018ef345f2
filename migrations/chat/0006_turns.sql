-- A turn is a leased row: its owner beats, everybody else leaves it alone until the lease is over.
create table turns (
    id text primary key,
    session_id text not null references sessions (id) on delete cascade,
    user_message_id text not null,
    assistant_message_id text not null,
    model text,
    state text not null check (state in ('queued', 'running', 'completed', 'stopped', 'failed', 'interrupted')),
    attempt integer not null default 0,
    owner uuid,
    boot_id uuid,
    lease_until timestamptz,
    run_at timestamptz not null default clock_timestamp(),
    priority integer not null default 0,
    stop_requested boolean not null default false,
    trace_headers jsonb not null,
    trace_id text,
    -- The message so far, reduced from the chunks below next_chunk; kept only while the turn runs.
    checkpoint json,
    next_chunk integer not null default 0,
    -- The last chunk of the stream (finish, abort or error), for those who come after the end.
    ending json,
    error_class text,
    input_tokens bigint not null default 0,
    output_tokens bigint not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);

-- A session runs one turn at a time.
create unique index turns_one_live on turns (session_id) where state in ('queued', 'running');
create index turns_by_session on turns (session_id, created_at);
create index turns_queued on turns (priority desc, run_at, id) where state = 'queued';
create index turns_running on turns (lease_until) where state = 'running';

-- Written, under the fence, before every tool call that may have an effect: no row, no call.
create table turn_intents (
    turn_id text not null references turns (id) on delete cascade,
    attempt integer not null,
    step integer not null,
    call_id text not null,
    tool text not null,
    arguments text not null check (length(arguments) <= 8000),
    created_at timestamptz not null default clock_timestamp(),
    primary key (turn_id, attempt, step, call_id)
);
