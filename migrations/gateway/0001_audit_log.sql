-- Who changed what over HTTP. Appended only; rows older than POPAGENT_AUDIT_DAYS are removed in the background.
-- `key_id` is the first 12 hex digits of the key's SHA-256, so that a rotated key can be told from its successor and
-- the key itself is never here; null while the door has no key.
create table audit_log (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    key_id text check (key_id ~ '^[0-9a-f]{12}$'),
    method text not null check (length(method) <= 16),
    route text not null check (length(route) <= 200),
    path text not null check (length(path) <= 400),
    status integer not null,
    trace_id text check (trace_id ~ '^[0-9a-f]{32}$')
);

-- The only scan: drop what is too old.
create index audit_log_at on audit_log (at);
