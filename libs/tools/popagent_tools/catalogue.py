"""Every tool there is, by its name; an agent's profile chooses from here."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from popagent_agent.run_context import AgentProfile
from popagent_agent.toolset import Tool, Toolset
from popagent_tools.changing import delete_file, edit_file, make_folder, move_file, write_file
from popagent_tools.company import company_status
from popagent_tools.files import grep_files, list_files, read_file, stat_file
from popagent_tools.git import git_diff, git_log, git_show, git_status
from popagent_tools.shell import run_shell, shell_process
from popagent_tools.skills import skill_tools
from popagent_tools.web import web_search

log = logging.getLogger(__name__)

# In order of use: a small model is offered the first ones of its agent. Those that open skills are not
# among them: an agent has them by having a skill.
CATALOGUE: Final[dict[str, Tool]] = {
    tool.name: tool
    for tool in (
        read_file,
        list_files,
        grep_files,
        stat_file,
        edit_file,
        write_file,
        delete_file,
        move_file,
        make_folder,
        git_status,
        git_diff,
        git_log,
        git_show,
        run_shell,
        shell_process,
        web_search,
        company_status,
    )
}


def tools_of(agent: AgentProfile) -> Toolset:
    """Return the tools of a profile, and those that its skills give."""
    return toolset_for(agent.tools, skill_tools(agent))


def toolset_for(names: Sequence[str], always: Sequence[Tool] = ()) -> Toolset:
    """Return the named tools in that order, then `always`; a name without a tool is logged and left out."""
    unknown = [name for name in names if name not in CATALOGUE]
    if unknown:
        log.warning("agent has tools that do not exist", extra={"tools": ", ".join(unknown)})
    return Toolset((CATALOGUE[name] for name in names if name in CATALOGUE), always)
