"""`python -m popagent_local`: the local commands alone."""

from popagent_local.commands import local

local(prog_name="popagent")
