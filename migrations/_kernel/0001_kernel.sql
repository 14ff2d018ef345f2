-- Applied to every service's schema before the service's own files; libs/rows is the only user of these tables.

-- Facts for others, written beside the change they tell of and published after its commit.
-- `id` is the event's id and the Nats-Msg-Id; `position` keeps the order of one aggregate.
create table outbox (
    id text primary key,
    position bigint generated always as identity,
    subject text not null,
    aggregate_id text not null,
    payload text not null,
    headers jsonb not null default '{}',
    created_at timestamptz not null default clock_timestamp(),
    sent_at timestamptz
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
create index outbox_unsent on outbox (position) where sent_at is null;
-- Republication and pruning go by the time of sending.
create index outbox_sent on outbox (sent_at) where sent_at is not null;

-- How far this schema's events got in a stream, to notice that the stream was wiped or went back.
create table stream_marks (
    stream text primary key,
    identity text not null,
    last_seq bigint not null,
    losses integer not null default 0,
    noted_at timestamptz not null default clock_timestamp()
);

-- Events whose effect is in this schema; inserted in the transaction of the effect, kept for 8 days.
create table inbox (
    consumer text not null,
    event_id text not null,
    seen_at timestamptz not null default clock_timestamp(),
    primary key (consumer, event_id)
);
create index inbox_seen on inbox (seen_at);

-- Work that takes longer than one request; a leased row, see libs/rows/popagent_rows/leased.py.
create table jobs (
    id text primary key,
    kind text not null,
    key text,
    state text not null default 'queued' check (state in ('queued', 'running', 'completed', 'failed')),
    input jsonb not null default '{}',
    output jsonb,
    error text,
    progress real not null default 0 check (progress between 0 and 1),
    note text not null default '',
    attempt integer not null default 0,
    max_attempts integer not null default 5 check (max_attempts between 1 and 100),
    owner uuid,
    boot_id uuid,
    lease_until timestamptz,
    run_at timestamptz not null default clock_timestamp(),
    priority integer not null default 0,
    stop_requested boolean not null default false,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    check ((state = 'running') = (owner is not null and lease_until is not null))
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
create index jobs_queued on jobs (priority desc, run_at, id) where state = 'queued';
create index jobs_running on jobs (lease_until) where state = 'running';
-- The same request sent twice is one job, for as long as the job is kept.
create unique index jobs_key on jobs (kind, key) where key is not null;
create index jobs_ended on jobs (updated_at) where state in ('completed', 'failed');
