-- A workspace is a directory below the workspace root, stored relative to it, so that the root may move.
create table workspaces (
    id text primary key,
    name text not null check (length(name) between 1 and 120),
    path text not null unique,
    is_default boolean not null,
    revision integer not null,
    created_at timestamptz not null default clock_timestamp()
);

-- Exactly one workspace can be the default.
create unique index workspaces_default on workspaces (is_default) where is_default;

insert into workspaces (id, name, path, is_default, revision) values ('default', 'Default workspace', 'default', true, 0);
