-- What is written: Markdown pages in folders, per workspace. They live here alone; no file of a repository holds them.

-- One row for each workspace that ever had documentation. Whoever changes something raises its version first, and so
-- holds the row: changes of one workspace come one after another, and a path that was free stays so until the commit.
create table libraries (
    workspace_id text primary key,
    version bigint not null default 0
);

-- `key` is what paths have in common that read alike, see paths.py: there is one of them in a workspace.
-- Folders above a folder or a page are rows too. Paths are compared by bytes: what lies below one is a range.
create table folders (
    workspace_id text not null references libraries (workspace_id),
    path text collate "C" not null check (octet_length(path) <= 1024),
    key text collate "C" not null,
    created_at timestamptz not null default clock_timestamp(),
    primary key (workspace_id, path)
);
create unique index folders_key on folders (workspace_id, key);

-- A deleted page keeps its row, and its last text, for thirty days.
-- `written_version` is the version at which it got this text; a move raises `version` alone.
create table pages (
    id text primary key,
    workspace_id text not null references libraries (workspace_id),
    path text collate "C" not null check (octet_length(path) <= 1024),
    key text collate "C" not null,
    title text not null,
    body text not null check (length(body) <= 1000000),
    revision text not null check (length(revision) = 64),
    characters integer not null,
    version integer not null default 0,
    written_version integer not null default 0,
    source_id text,
    source_revision text,
    created_at timestamptz not null default clock_timestamp(),
    written_at timestamptz not null default clock_timestamp(),
    updated_at timestamptz not null default clock_timestamp(),
    deleted_at timestamptz
);
create unique index pages_path on pages (workspace_id, path) where deleted_at is null;
create unique index pages_key on pages (workspace_id, key) where deleted_at is null;
-- What was imported from one place is one page.
create unique index pages_source on pages (workspace_id, source_id) where source_id is not null and deleted_at is null;
-- The newest deleted ones are listed first.
create index pages_deleted on pages (workspace_id, deleted_at desc, id desc) where deleted_at is not null;
-- The oldest go for good, whatever their workspace.
create index pages_to_prune on pages (deleted_at) where deleted_at is not null;

-- Texts that a page had before; the one it has now is in its own row.
create table page_versions (
    page_id text not null references pages (id) on delete cascade,
    version integer not null,
    path text not null,
    body text not null,
    revision text not null,
    characters integer not null,
    written_at timestamptz not null,
    primary key (page_id, version)
);

-- Workspaces that are about to be deleted: nothing new may refer to them until then, or until somebody who closed one
-- opens it again. Who stores something looks here in the same statement or behind the same lock.
create table closed_workspaces (
    workspace_id text not null,
    closed_by text not null,
    until timestamptz not null,
    primary key (workspace_id, closed_by)
);
