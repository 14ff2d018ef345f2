-- When work starts. A row of the source self-update is a policy of the system: nothing plans it by the clock.
create table schedules (
    id text primary key,
    source text not null check (source in ('user', 'self-update')),
    workspace_id text not null,
    name text not null check (length(name) between 1 and 120),
    prompt text not null,
    agent_id text,
    model text,
    cron text not null check (length(cron) <= 200),
    cron_words text not null,
    max_attempts integer not null check (max_attempts between 1 and 10),
    catch_up_minutes integer not null check (catch_up_minutes between 0 and 10080),
    skip_if_running boolean not null,
    enabled boolean not null,
    next_run_at timestamptz,
    revision integer not null default 0,
    version integer not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    check (next_run_at is null or (enabled and source = 'user'))
);

-- One autonomous slot a workspace.
create unique index schedules_self_update on schedules (workspace_id) where source = 'self-update';
create index schedules_due on schedules (next_run_at) where next_run_at is not null;

-- What came of each planned time. The id of the task is decided with the row, so that handing it over twice makes one.
create table schedule_runs (
    schedule_id text not null references schedules (id) on delete cascade,
    planned_at timestamptz not null,
    task_id text not null unique,
    asked boolean not null,
    outcome text not null check (outcome in ('due', 'started', 'skipped', 'missed', 'refused')),
    note text not null default '' check (length(note) <= 1000),
    tries integer not null default 0,
    try_at timestamptz not null default clock_timestamp(),
    primary key (schedule_id, planned_at)
);

create index schedule_runs_due on schedule_runs (try_at) where outcome = 'due';
