-- People look for turns, and each look at the page adds traces of plain requests: the list of turns must not read past
-- them. With a state the planner takes traces_by_state where that is rarer.
create index traces_of_turns on traces (started_at desc, trace_id desc) where turn_id is not null;
