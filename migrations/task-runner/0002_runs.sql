-- What the runs of tasks did beside their transcript: their model calls, and what hooks were told and answered.
create table model_usage (
    id text primary key,
    turn_id text,
    agent_id text not null,
    trace_id text,
    requested_model text,
    route_model text not null,
    source text not null,
    input_tokens bigint not null,
    cached_tokens bigint not null,
    output_tokens bigint not null,
    reasoning_tokens bigint not null,
    estimated boolean not null,
    queue_ms integer not null,
    first_token_ms integer,
    duration_ms integer not null,
    finish_reason text,
    error_class text,
    retries integer not null,
    created_at timestamptz not null default clock_timestamp()
);

create index model_usage_by_time on model_usage (created_at);

create table hook_runs (
    seq bigint generated always as identity primary key,
    id text not null unique,
    task_id text not null references tasks (id) on delete cascade,
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

create index hook_runs_by_task on hook_runs (task_id, seq);
