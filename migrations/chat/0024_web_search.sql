-- Every agent may search the web. Tools stand in order of use, and a small model is offered the first ones: this comes last.
-- A profile that somebody has edited stays as it is.
update agents
set tools = tools || array['web-search']
where revision = 0 and 'web-search' <> all (tools);
