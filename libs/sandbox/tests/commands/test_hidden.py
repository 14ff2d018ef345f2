"""What a command must not see or change in the workspace itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from libs.sandbox.tests.commands.processes import printed
from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.hidden import HiddenPaths, TooMuchToHideError


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


def with_secret(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / ".env").write_text("canary")
    return folder


async def test_a_credential_is_not_found_by_carrying_it_deeper_than_a_path_can_name(
    workspace: Path, commands: Commands
) -> None:
    with_secret(workspace / "sub")
    down = "for n in $(seq 30); do cd -P $name; done 2>/dev/null; cat sub/.env .env; cd /workspace; ls"

    text = await printed(
        commands,
        f"name={'d' * 200}; for n in $(seq 30); do mkdir $name; cd -P $name; done; mv /workspace/sub .; cat sub/.env",
    )
    text += await printed(commands, f"name={'d' * 200}; {down}")

    assert "canary" not in text
    assert text.endswith(f"{'d' * 200}\n")


async def test_a_credential_is_not_found_by_exchanging_folders_and_their_times(
    workspace: Path, commands: Commands
) -> None:
    for number, folder in enumerate((with_secret(workspace / "one"), workspace / "two")):
        folder.mkdir(exist_ok=True)
        os.utime(folder, (number + 1, number + 1))
    os.utime(workspace, (1, 1))

    await commands.run(":")
    text = await printed(
        commands, "mv one three; mv two one; mv three two; touch -d @1 one .; touch -d @2 two; touch -d @1 ."
    )
    text += await printed(commands, "cat one/.env two/.env")

    assert "canary" not in text
    assert "Permission denied" in text


async def test_a_credential_that_its_folder_tells_is_not_found_by_renaming_the_folder(
    workspace: Path, commands: Commands
) -> None:
    for path in (".docker/config.json", "sub/.cargo/credentials.toml", ".config/gh/hosts.yml"):
        (workspace / path).parent.mkdir(parents=True)
        (workspace / path).write_text("canary")
    (workspace / ".github").mkdir()
    (workspace / ".github" / "copilot-instructions.md").write_text("as it was")

    text = await printed(
        commands,
        "mv .docker a; mv sub/.cargo sub/b; mv .config c; mv sub d; mv d/.cargo d/b; mv .github e; touch .docker/new",
    )
    text += await printed(
        commands,
        "cat a/* b/* c/gh/* d/b/* */*; echo changed > e/copilot-instructions.md; ls -A; ls .docker",
    )

    assert "canary" not in text
    assert text.count("Device or resource busy") == 5
    assert text.endswith(".config\n.docker\n.github\nd\nconfig.json\nnew\n")
    assert (workspace / ".github" / "copilot-instructions.md").read_text() == "as it was"


async def test_what_is_protected_is_so_in_folders_of_any_name(workspace: Path, commands: Commands) -> None:
    for name in ("a\nb", os.fsdecode(b"\xff"), "\u200b", "-x"):
        (workspace / name).mkdir()
        (workspace / name / "AGENTS.md").write_text("as it was")

    await commands.run('for file in */AGENTS.md; do echo changed > "./$file"; rm -f "./$file"; done; exit 0')

    assert [path.read_text() for path in workspace.glob("*/AGENTS.md")] == ["as it was"] * 4


async def test_names_that_are_no_text_are_covered_too(workspace: Path, commands: Commands) -> None:
    with_secret(workspace / os.fsdecode(b"\xff\xfe"))
    (workspace / os.fsdecode(b"\xff") / ".git").mkdir(parents=True)

    text = await printed(commands, "cat */.env; ls -d */")

    assert "canary" not in text
    assert "Permission denied" in text


def test_a_folder_that_cannot_be_looked_into_is_covered_whole(workspace: Path, folder: ContainedFolder) -> None:
    # Its owner, who runs the command as well, could open it again.
    for mode in (0o000, 0o300, 0o600):
        with_secret(workspace / f"closed{mode:o}").chmod(mode)
    workspace.chmod(0o777)
    for above in workspace.parents[:2]:
        above.chmod(above.stat().st_mode | 0o111)
    account = os.geteuid()
    try:
        if account == 0:
            for closed in workspace.iterdir():
                os.chown(closed, 65534, 65534)
            os.seteuid(65534)
        hidden = HiddenPaths(folder).look()
    finally:
        os.seteuid(account)

    assert sorted(hidden.folders) == ["closed0", "closed300", "closed600"]
    assert hidden.files == ()


async def test_a_workspace_with_too_much_to_cover_is_refused(workspace: Path, commands: Commands) -> None:
    for number in range(401):
        (workspace / f"{number}.pem").touch()

    with pytest.raises(TooMuchToHideError, match="401 paths in this workspace may hold credentials"):
        await commands.run("echo x")
