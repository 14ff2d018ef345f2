-- Work that was given to a specialist: what it was asked and said stands in a thread of its own, which no session shows
-- and which goes with its session.
create table delegations (
    thread_id text primary key references threads (id) on delete cascade,
    session_id text not null references sessions (id) on delete cascade,
    turn_id text not null,
    -- The call of the supervisor; a turn that is run again after it had done nothing makes new ones.
    call_id text not null,
    agent_id text not null,
    state text not null check (state in ('completed', 'failed', 'stopped')),
    input_tokens bigint not null,
    output_tokens bigint not null,
    created_at timestamptz not null default clock_timestamp(),
    unique (turn_id, call_id)
);

-- Whoever deletes a session asks for its delegations.
create index delegations_by_session on delegations (session_id);
