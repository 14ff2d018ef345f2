-- Who the agents are. After this seed PostgreSQL is the only truth: code holds no prompt and no capability.
create table agents (
    id text primary key,
    name text not null,
    delegation_description text not null,
    instructions text not null,
    source_url text,
    workspace_access text not null check (workspace_access in ('none', 'read-only', 'read-write')),
    browser_access boolean not null,
    delegable boolean not null,
    tools text [] not null,
    model_override text,
    revision integer not null,
    updated_at timestamptz not null default clock_timestamp()
);
