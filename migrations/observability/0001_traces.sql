-- What happened, in the words of the services that did it. Spans and logs lie in one partition a day, because dropping
-- a table costs the same however many rows it has; `make_day` and `drop_day` are the only ones that touch partitions.

-- One row a stored day: the catalogue of partitions, and counts that need no scan.
create table days (
    day date primary key,
    spans bigint not null default 0,
    logs bigint not null default 0
) with (fillfactor = 50);

-- A span is written when it starts (ended_at null) and once more when it ended; what is ended never changes again.
-- `day` is the UTC day of started_at, so that both writings meet in the same partition.
-- `announced` says that the row was there before its end came: it tells an update from an insert.
-- `size` counts the bytes of attributes, events and links as JSON, at most 32 kB.
create table spans (
    day date not null,
    trace_id text not null check (trace_id ~ '^[0-9a-f]{32}$'),
    span_id text not null check (span_id ~ '^[0-9a-f]{16}$'),
    parent_id text check (parent_id ~ '^[0-9a-f]{16}$'),
    service text not null,
    instance text not null,
    name text not null,
    kind text not null,
    started_at timestamptz not null,
    ended_at timestamptz check (ended_at >= started_at),
    failed boolean not null,
    status_text text not null,
    attributes jsonb not null,
    events jsonb not null,
    links jsonb not null,
    size integer not null,
    announced boolean not null default false,
    primary key (trace_id, span_id, day)
) partition by range (day);

-- Log records, and every event of the suite with its subject as message. `id` is a digest of what the record says, so
-- that a batch delivered twice is stored once.
create table logs (
    day date not null,
    id text not null,
    at timestamptz not null,
    service text not null,
    level text not null,
    logger text not null,
    message text not null,
    trace_id text,
    span_id text,
    attributes jsonb not null,
    primary key (id, day)
) partition by range (day);
-- A trace is opened with the records written inside it.
create index logs_of_trace on logs (trace_id, at) where trace_id is not null;

-- One row a trace, kept up to date in the transaction that stores its spans; lists read nothing else.
-- root_rank 0: name and service are those of a span without parent; 1: of the earliest span so far.
-- seen_at: when the last batch with a span of it was sent; a trace that is open and silent for long has lost a process.
create table traces (
    trace_id text primary key,
    name text not null,
    service text not null,
    root_rank smallint not null,
    root_started_at timestamptz not null,
    started_at timestamptz not null,
    ended_at timestamptz,
    seen_at timestamptz not null,
    span_count integer not null,
    open_count integer not null,
    failed_count integer not null,
    session_id text,
    turn_id text,
    input_tokens bigint not null,
    output_tokens bigint not null,
    state text not null generated always as (
        case when open_count > 0 then 'open' when failed_count > 0 then 'error' else 'ok' end
    ) stored
) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
-- The list, newest first, a page at a time; also what is too old, and the oldest and newest moment.
create index traces_newest on traces (started_at desc, trace_id desc);
create index traces_by_state on traces (state, started_at desc, trace_id desc);
create index traces_of_session on traces (session_id, started_at desc, trace_id desc) where session_id is not null;
create index traces_of_turn on traces (turn_id, started_at desc, trace_id desc) where turn_id is not null;

-- Attached, not created in place: "create table ... partition of" would wait for every reader, and hold up all others.
create function make_day(wanted date) returns boolean language plpgsql as $$
declare
    parent text;
    part text;
begin
    perform pg_advisory_xact_lock(hashtext('popagent observability days'));
    if exists (select from days where day = wanted) then
        return false;
    end if;
    foreach parent in array array['spans', 'logs'] loop
        part := parent || to_char(wanted, '_YYYYMMDD');
        execute format('create table %I (like %I including all)', part, parent);
        execute format(
            'alter table %I attach partition %I for values from (%L) to (%L)', parent, part, wanted, wanted + 1
        );
    end loop;
    insert into days (day) values (wanted);
    return true;
end
$$;

-- Gives up after a second when a long read holds the table; the next round drops it.
create function drop_day(unwanted date) returns boolean language plpgsql as $$
begin
    perform set_config('lock_timeout', '1s', true);
    perform pg_advisory_xact_lock(hashtext('popagent observability days'));
    execute format('drop table if exists %I, %I',
        'spans' || to_char(unwanted, '_YYYYMMDD'), 'logs' || to_char(unwanted, '_YYYYMMDD'));
    delete from days where day = unwanted;
    return found;
end
$$;
