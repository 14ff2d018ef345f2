-- The chore drops what hooks did more than thirty days ago.
create index hook_runs_by_time on hook_runs (created_at);
