-- Workspaces that are about to be deleted: nothing new may refer to them until then, or until somebody who closed one
-- opens it again. Who stores something looks here in the same statement or behind the same lock.
create table closed_workspaces (
    workspace_id text not null,
    closed_by text not null,
    until timestamptz not null,
    primary key (workspace_id, closed_by)
);
