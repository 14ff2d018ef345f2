-- Secrets of people, sealed: an envelope each (AES-256-GCM) that the key in POPAGENT_SECRET_KEY opens for this row alone.
create table secrets (
    resource text not null check (length(resource) between 1 and 64),
    name text not null check (length(name) between 1 and 120),
    key_id bytea not null check (length(key_id) = 8),
    sealed bytea not null check (length(sealed) <= 65536),
    updated_at timestamptz not null default clock_timestamp(),
    primary key (resource, name)
);

-- One row: the model server that a person chose in the page; no url: none. Its key is the secret (models, connection).
create table model_connection (
    id boolean primary key check (id),
    url text check (length(url) between 1 and 2000),
    revision integer not null,
    updated_at timestamptz not null
);

insert into model_connection values (true, null, 0, clock_timestamp());
