-- Hooks are told that an attempt of a task began, and how it ended.
alter table hooks drop constraint hooks_event_check;
alter table hooks add check (event in (
    'SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'SubagentStart', 'SubagentStop',
    'TaskStart', 'TaskStop', 'Stop', 'SessionEnd'
));
