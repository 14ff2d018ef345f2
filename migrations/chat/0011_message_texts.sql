-- What is searched: the words of each message, folded (threads/words.py), written with the message. Only searches read it.
-- Without a foreign key, whose check every turn would pay for: it goes with its thread, in one statement (threads.DELETE).
create table message_texts (
    thread_id text not null,
    seq bigint not null,
    -- ASCII. Null: stored before there was a search; a chore folds it.
    folded text,
    -- A trigram index takes milliseconds for what a row takes microseconds, so that a chore lets it in, not a turn.
    -- Until then the row is read as it is.
    indexed boolean not null default false,
    primary key (thread_id, seq)
) with (autovacuum_vacuum_scale_factor = 0.05);

create index message_texts_fresh on message_texts (thread_id, seq) where not indexed;

-- A server without the extension searches by reading everything.
do $do$ begin
    if exists (select 1 from pg_opclass where opcname = 'gin_trgm_ops' and opcnamespace = to_regnamespace('ext')) then
        create index message_texts_words on message_texts using gin (folded ext.gin_trgm_ops)
            with (gin_pending_list_limit = 1024) where indexed;
    end if;
end $do$;

insert into message_texts (thread_id, seq) select thread_id, seq from messages;

-- The title, folded alike; null until the chore has seen it.
alter table sessions add column folded_title text;
