-- A turn that was stopped has spans like any other, and one whose process died has some that never end: how it ended is told by the span of the turn
-- and by nothing else, and the list shows it. Traces that are stored already have none; they go by their age.
alter table traces add column turn_state text
    check (turn_state in ('completed', 'stopped', 'failed', 'interrupted'));
