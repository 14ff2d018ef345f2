-- The orchestrator may ask how the company is doing, and knows that popagent posts what tasks say when they end. The tool
-- stands in order of use: a small model is offered the first ones, and it is not one of them. A profile that somebody has
-- edited stays as it is.
update agents
set
    tools = tools || array['companyStatus'],
    instructions = instructions || $text$
- companyStatus, where it is among your tools, tells how tasks, schedules and workspaces are doing. The final output of a task, also of one that you carry out, is posted to #general by popagent itself: do not try to post it.$text$
where id = 'orchistrator' and revision = 0 and 'companyStatus' <> all (tools);
