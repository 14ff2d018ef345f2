"""The tools that run commands, as a model meets them; what commands can do at all is proved in libs/sandbox."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.tools.tests.runs import call, run_in
from popagent_agent.run_context import RunContext, WorkspacePolicy
from popagent_sandbox import bubblewrap
from popagent_sandbox.commands import Commands
from popagent_sandbox.confinement import confinement, confinement_problem
from popagent_sandbox.contained import ContainedFolder
from popagent_tools.catalogue import CATALOGUE

confined = pytest.mark.skipif(confinement_problem() is not None, reason=str(confinement_problem()))


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunContext]:
    with ContainedFolder(tmp_path) as folder:
        commands = Commands(folder)
        yield run_in(folder, "read-write", "read-write", commands)
        commands.close()


@confined
async def test_a_command_tells_its_status_and_what_it_printed(run: RunContext) -> None:
    good = await call(run, "shell", command="echo hello; echo bad >&2")
    bad = await call(run, "shell", command="exit 3")

    assert (good.text, good.error) == ("Exit status 0.\nhello\nbad", False)
    assert bad.text == "Exit status 3.\n(no output)"


@confined
async def test_a_long_output_fits_the_model_and_says_what_is_missing(run: RunContext) -> None:
    outcome = await call(run, "shell", command="seq 1 200000")

    assert len(outcome.text) < 600 * 3
    assert outcome.text.startswith("Exit status 0.\n1\n2\n3\n")
    assert "characters are left out here" in outcome.text
    assert outcome.text.endswith("\n199999\n200000")


@confined
async def test_what_takes_too_long_says_how_to_give_it_more(run: RunContext) -> None:
    outcome = await call(run, "shell", command="echo begun; sleep 100", timeout_s=1)

    assert outcome.text == "Ended: it took longer than 1 s. timeout_s can be up to 600.\nbegun"


@pytest.mark.parametrize("timeout_s", [0, 601, "long"])
async def test_a_time_out_of_bounds_is_refused(run: RunContext, timeout_s: object) -> None:
    outcome = await call(run, "shell", command="true", timeout_s=timeout_s)

    assert outcome.error
    assert "timeout_s" in outcome.text


@confined
async def test_a_command_in_the_background_is_read_and_ended(run: RunContext) -> None:
    started = await call(run, "shell", command="echo up; sleep 1000", background=True)
    first = await call(run, "shellProcess", process="p1")
    ended = await call(run, "shellProcess", process="p1", end=True)
    unknown = await call(run, "shellProcess", process="p7")

    assert started.text == "Started in the background as p1. Read it with shellProcess."
    assert first.text == "Still running.\nup"
    assert ended.text == "Ended: it was stopped.\n(no output)"
    assert (unknown.error, unknown.text) == (True, "No command in the background is called p7. There is: p1.")


@confined
async def test_a_secret_in_an_output_is_not_shown(run: RunContext) -> None:
    outcome = await call(run, "shell", command="echo key sk-proj-$(printf 'a1B2%.0s' $(seq 12))")

    assert "a1B2a1B2" not in outcome.text


async def test_whoever_may_only_read_runs_no_command(run: RunContext) -> None:
    assert run.workspace is not None
    reader = dataclasses.replace(run, policy=WorkspacePolicy("read-only"))
    mixed = dataclasses.replace(run, workspace=dataclasses.replace(run.workspace, access="read-only"))
    nowhere = dataclasses.replace(run, workspace=None)

    for denied in (reader, mixed, nowhere):
        outcome = await call(denied, "shell", command="touch made")
        assert outcome.error
        assert "read the workspace" in outcome.text or "no workspace" in outcome.text
    assert not (run.workspace.root / "made").exists()
    assert {CATALOGUE[name].access for name in ("shell", "shellProcess")} == {"exec"}


async def test_where_commands_cannot_be_confined_the_tool_refuses_and_says_what_to_do(
    run: RunContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "programs", lambda: [str(refusing)])
    confinement.cache_clear()
    try:
        outcome = await call(run, "shell", command="touch made")
    finally:
        confinement.cache_clear()

    assert outcome.error
    assert outcome.text.startswith(
        "Commands cannot be confined here, so agents cannot run any (No permissions to create new namespace). "
    )
    assert "docs/sandbox.md says what each system needs." in outcome.text
    assert not (tmp_path / "made").exists()


@confined
async def test_stopping_a_turn_ends_its_command(run: RunContext) -> None:
    running = asyncio.create_task(call(run, "shell", command="echo $$ > started; sleep 1000"))
    assert run.workspace is not None
    while not (run.workspace.root / "started").exists():
        await asyncio.sleep(0.01)

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, 20)
