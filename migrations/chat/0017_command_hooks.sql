-- A hook may be a program of the operator's folder, run in the sandbox: then it has an argv and no url.
alter table hooks drop constraint hooks_kind_check, drop constraint hooks_url_check;
alter table hooks
    add column argv text [] not null default '{}' check (cardinality(argv) <= 32),
    add check (kind in ('http', 'command')),
    add check (length(url) <= 2000),
    add check ((kind = 'http') = (url <> '') and (kind = 'command') = (argv <> '{}'));
