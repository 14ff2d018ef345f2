-- The list of chats marks those whose last answer failed or was interrupted, without a look at turns for every row.
-- Null while a turn runs, and after a person shortened the chat or showed another branch.
alter table sessions add column last_turn_state text
    check (last_turn_state in ('completed', 'stopped', 'failed', 'interrupted'));

update sessions
set last_turn_state = newest.state, version = version + 1
from (
    select distinct on (session_id) session_id, state from turns order by session_id, created_at desc
) as newest
where newest.session_id = sessions.id and newest.state in ('completed', 'stopped', 'failed', 'interrupted');
