-- One row, no column defaults: a missing row is a configuration error, never a reason to invent values (AG-7).
create table agent_runtime_settings (
    id boolean primary key check (id),
    model_source text not null check (model_source in ('auto', 'router', 'local')),
    default_model text check (length(default_model) between 1 and 200),
    supervisor_max_steps integer not null check (supervisor_max_steps between 1 and 128),
    specialist_max_steps integer not null check (specialist_max_steps between 1 and 128),
    concurrent_tool_calls integer not null check (concurrent_tool_calls between 1 and 32),
    processor_retries integer not null check (processor_retries between 0 and 10),
    final_response_feedback text not null check (length(final_response_feedback) between 1 and 4000),
    delegation_context_messages integer not null check (delegation_context_messages between 0 and 200),
    delegation_result_characters integer not null check (delegation_result_characters between 200 and 200000),
    delegation_failure_text text not null check (length(delegation_failure_text) between 1 and 2000),
    delegation_truncation_text text not null check (length(delegation_truncation_text) between 1 and 2000),
    background_concurrency integer not null check (background_concurrency between 1 and 32),
    background_poll_ms integer not null check (background_poll_ms between 100 and 600000),
    task_timeout_ms integer not null check (task_timeout_ms between 1000 and 86400000),
    revision integer not null,
    updated_at timestamptz not null
);

insert into agent_runtime_settings values (
    true,
    'auto',
    null,
    32,
    24,
    4,
    2,
    'No more tools can be used in this turn. Answer the person''s last message now from what you found out, and say openly what is missing or was not done.',
    12,
    12000,
    'The specialist could not finish. Go on without its result, or try a smaller request.',
    'The result was cut here because it was too long.',
    2,
    1000,
    1800000,
    0,
    clock_timestamp()
);
