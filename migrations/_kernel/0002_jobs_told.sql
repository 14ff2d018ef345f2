-- Who follows a job is told what it is for and what it works on, and drops what is older than what it knows.
alter table jobs
    add column title text not null default '',
    add column about text,
    add column version bigint not null default 0;

-- The newest are listed first.
create index jobs_by_time on jobs (created_at desc, id desc);
