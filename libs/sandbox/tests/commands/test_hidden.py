"""What a command must not see or change in the workspace itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from libs.sandbox.tests.commands.processes import printed
from popagent_sandbox.commands import Commands
from popagent_sandbox.hidden import TooMuchToHideError


async def test_credentials_and_the_repositorys_storage_are_covered(workspace: Path, commands: Commands) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("canary")
    (workspace / "sub").mkdir()
    for name in (".env", "sub/.npmrc", "sub/server.pem", ".env.example"):
        (workspace / name).write_text("canary" if name != ".env.example" else "EXAMPLE=\n")

    text = await printed(
        commands,
        "ls -A .git; cat .git/config .env sub/.npmrc sub/server.pem; mv .env e; rm -rf .git; mv sub other;"
        "cat other/*.pem; echo x > .git/hook; chmod 777 .git; cat .env.example",
    )

    assert "canary" not in text
    assert text.count("Permission denied") == 4
    assert text.endswith("EXAMPLE=\n")
    assert (workspace / ".git" / "config").read_text() == (workspace / ".env").read_text() == "canary"


async def test_what_is_protected_can_be_read_and_not_changed(workspace: Path, commands: Commands) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / "sub").mkdir()
    (workspace / "node_modules").mkdir()
    for name in ("AGENTS.md", ".mcp.json", ".vscode/tasks.json", "sub/AGENTS.md", "node_modules/AGENTS.md"):
        (workspace / name).write_text("as it was\n")
    (workspace / "sub" / "agents-link.md").symlink_to("../AGENTS.md")

    ran = await commands.run(
        "cat AGENTS.md; for name in AGENTS.md .mcp.json .vscode/tasks.json .vscode/new sub/AGENTS.md; do"
        " (echo changed > $name) && echo $name; rm -f $name; mv $name other; done 2>/dev/null; mv sub moved;"
        "(echo changed > moved/AGENTS.md) 2>/dev/null; echo changed > node_modules/AGENTS.md; exit 0"
    )

    assert (ran.ended.status, ran.printed.head) == (0, "as it was\n")
    unchanged = ("AGENTS.md", ".mcp.json", ".vscode/tasks.json", "moved/AGENTS.md")
    assert {(workspace / name).read_text() for name in unchanged} == {"as it was\n"}
    assert (workspace / "node_modules" / "AGENTS.md").read_text() == "changed\n"
    assert not (workspace / ".vscode" / "new").exists()


async def test_only_so_many_are_protected_and_those_at_the_top_first(workspace: Path, commands: Commands) -> None:
    for number in range(210):
        (workspace / f"sub{number}").mkdir()
        (workspace / f"sub{number}" / "AGENTS.md").touch()
    (workspace / "AGENTS.md").touch()

    text = await printed(
        commands, "for file in AGENTS.md */AGENTS.md; do (echo x > $file) 2>/dev/null && echo y; done | wc -l"
    )

    assert text == "11\n"
    assert (workspace / "AGENTS.md").read_text() == ""


async def test_a_command_changes_what_is_installed(workspace: Path, commands: Commands) -> None:
    for name in ("pyproject.toml", "uv.lock", "package.json", "package-lock.json", "requirements.txt", "Cargo.toml"):
        (workspace / name).write_text("as it was\n")

    ran = await commands.run("for file in *; do echo changed > new && mv new $file || exit 1; done")

    assert ran.ended.status == 0
    assert {file.read_text() for file in workspace.iterdir()} == {"changed\n"}


async def test_credentials_that_came_later_are_covered_from_the_next_command_on(
    workspace: Path, commands: Commands
) -> None:
    (workspace / "sub").mkdir()
    os.utime(workspace / "sub", (1, 1))
    await commands.run(":")
    (workspace / "sub" / "id_rsa").write_text("canary")

    assert "Permission denied" in await printed(commands, "cat sub/id_rsa")


async def test_a_workspace_with_too_much_to_cover_is_refused(workspace: Path, commands: Commands) -> None:
    for number in range(401):
        (workspace / f"{number}.pem").touch()

    with pytest.raises(TooMuchToHideError, match="401 paths in this workspace may hold credentials"):
        await commands.run("echo x")
