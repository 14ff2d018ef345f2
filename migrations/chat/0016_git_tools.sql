-- Who judges or explains a checkout sees its history and what was changed in it. The orchestrator delegates that, so it
-- gets none. Tools stand in order of use, and a small model is offered the first ones: these come last. A profile that
-- somebody has edited stays as it is.
update agents
set tools = tools || array(
    select added.tool
    from unnest(
        case id
            when 'implementer' then array['gitStatus', 'gitDiff']
            else array['gitStatus', 'gitDiff', 'gitLog', 'gitShow']
        end
    ) with ordinality as added (tool, place)
    where added.tool <> all (tools)
    order by added.place
)
where revision = 0
and id in ('researcher', 'implementer', 'reviewer', 'build-maintainer', 'build-release-manager');
