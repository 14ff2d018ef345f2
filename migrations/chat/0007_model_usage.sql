-- One row a model call, failed ones too; it outlives the session, because it is what was paid for.
create table model_usage (
    id text primary key,
    turn_id text,
    agent_id text not null,
    trace_id text,
    requested_model text,
    route_model text not null,
    source text not null,
    input_tokens bigint not null,
    cached_tokens bigint not null,
    output_tokens bigint not null,
    reasoning_tokens bigint not null,
    estimated boolean not null,
    queue_ms integer not null,
    first_token_ms integer,
    duration_ms integer not null,
    finish_reason text,
    error_class text,
    retries integer not null,
    created_at timestamptz not null default clock_timestamp()
);

create index model_usage_by_time on model_usage (created_at);
