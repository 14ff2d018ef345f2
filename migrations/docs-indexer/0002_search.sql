-- Search by words. Ours, not the text search of PostgreSQL: that refuses a page of a million different words, takes a
-- sentence without blanks for one word, and tears names apart; its ranking was no better than none.

-- A workspace by a number, because it stands in every posting; and over how much a rank is reckoned.
alter table libraries
    add column number integer generated always as identity unique,
    add column chunks integer not null default 0,
    add column words bigint not null default 0;

-- A page in pieces of at most 1,500 characters. `sections` are the headings that it stands below or holds, each with
-- its place in the chunk. They go with the text that they were cut from, in the same transaction.
create table chunks (
    id bigint generated always as identity primary key,
    page_id text not null references pages (id) on delete cascade,
    library integer not null,
    number integer not null,
    body text not null,
    sections jsonb not null,
    words integer not null,
    unique (page_id, number)
);

-- How often a term is in a chunk, and how long that is, so that a rank is found without looking at the chunk.
-- A term of the title counts as several.
create table postings (
    library integer not null,
    term text collate "C" not null,
    chunk_id bigint not null,
    occurrences smallint not null,
    words smallint not null,
    primary key (library, term, chunk_id) include (occurrences, words)
);
-- What goes with a chunk.
create index postings_of_chunk on postings (chunk_id);

-- Words that were written at some time, for those who mistype one. A word may be here that stands nowhere any more.
create table vocabulary (
    library integer not null,
    word text collate "C" not null,
    primary key (library, word)
);
do $$
begin
    if exists (select 1 from pg_opclass where opcname = 'gin_trgm_ops' and opcnamespace = to_regnamespace('ext')) then
        create index vocabulary_likeness on vocabulary using gin (word ext.gin_trgm_ops);
    end if;
end
$$;

-- By which rules a page was cut and its terms were found; those of older rules are done again beside the work.
alter table pages add column index_version integer not null default 0;
create index pages_behind on pages (index_version) where deleted_at is null;
