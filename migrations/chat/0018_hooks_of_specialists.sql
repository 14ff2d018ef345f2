-- Hooks are asked before work is handed to a specialist, and told of its end.
alter table hooks drop constraint hooks_event_check;
alter table hooks add check (event in (
    'SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'SubagentStart', 'SubagentStop',
    'Stop', 'SessionEnd'
));
