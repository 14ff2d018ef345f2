-- Messages below one parent are siblings: GET of a session names them, and switching a branch goes down through them.
create index messages_by_parent on messages (thread_id, parent_id);
