-- The chore that deletes what ended well long ago begins with the oldest; what waits for a person is not in it.
create index tasks_over on tasks (ended_at) where state in ('completed', 'cancelled');
