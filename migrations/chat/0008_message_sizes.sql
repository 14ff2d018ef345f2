-- Bytes of a message as JSON, so that a page of history is bounded before it is read, not after.
alter table messages add column size_bytes integer not null
    generated always as (octet_length(parts::text) + octet_length(metadata::text)) stored;
