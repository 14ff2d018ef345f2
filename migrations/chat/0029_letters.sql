-- Agents of one run may write to each other with agentCommunication. Every agent that has somebody to write to gets the tool by
-- the run itself, so no profile names it among its tools; what a profile says is when to use it, and when not. A profile
-- that somebody has edited stays as it is.
update agents
set instructions = instructions || $text$
- agentCommunication, where it is among your tools, is for a short question to a specialist, or a word to one at work. Work is given with the tools named agent-…$text$
where id = 'orchistrator' and revision = 0 and instructions not like '%agentCommunication%';

update agents
set instructions = instructions || $text$

With agentCommunication, where it is among your tools, you may ask another agent what its role can tell and yours cannot. Wait for the answer before your last message.$text$
where
    id in ('researcher', 'implementer', 'reviewer', 'build-maintainer', 'build-release-manager', 'community-steward')
    and revision = 0
    and instructions not like '%agentCommunication%';
