-- Skills: procedures of an agent that it opens when a task needs them. Those that are enabled are read with the snapshot
-- of every run, by agent; names are ordered by their bytes, so that pages and prompts have one order everywhere.
create table skills (
    id text primary key,
    agent_id text not null references agents (id) on delete cascade,
    name text collate "C" not null check (length(name) <= 64 and name ~ '^[a-z0-9]+(-[a-z0-9]+)*$'),
    description text not null check (length(description) between 1 and 1024),
    instructions text not null check (length(instructions) between 1 and 50000),
    license text check (length(license) between 1 and 500),
    compatibility text check (length(compatibility) between 1 and 500),
    metadata jsonb not null default '{}',
    allowed_tools text check (length(allowed_tools) between 1 and 1000),
    -- Path below references/ → text.
    reference_texts jsonb not null default '{}',
    provenance text check (length(provenance) between 1 and 500),
    evolution_managed boolean not null default false,
    enabled boolean not null default true,
    -- Of all texts above; one agent's skills are bounded by the sum of it.
    text_bytes integer not null check (text_bytes > 0),
    revision integer not null default 0,
    created_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    -- Lists, the snapshot and the look for a name go through its index.
    unique (agent_id, name)
);
