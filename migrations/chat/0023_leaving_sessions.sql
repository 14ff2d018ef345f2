-- A long session is deleted piece by piece; from the first piece on nobody sees it any more.
alter table sessions add column leaving_at timestamptz;

create index sessions_leaving on sessions (leaving_at) where leaving_at is not null;
-- All sessions of a workspace are walked through in the order of their ids.
create index sessions_of_workspace on sessions (workspace_id, id);
