"""The tools that look at the history of the run's workspace and at what was changed; they change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool
from popagent_sandbox.git import Checkout, Difference, checkout
from popagent_sandbox.git_records import Branch, Change, Commit
from popagent_sandbox.git_run import Bounds
from popagent_sandbox.paths import printable
from popagent_tools.workspace import in_thread, room, workspace_of

T = TypeVar("T")

TIMEOUT_S: Final = 20.0
# Git itself is ended before the tool is, so that its own sentence is told.
GIT_TIMEOUT_S: Final = 15.0
TOKENS_PER_FILE: Final = 14
TOKENS_PER_COMMIT: Final = 40
MOST_FILES: Final = 200
MOST_COMMITS: Final = 50
SHOWN_BRANCHES: Final = 12
FEWEST_CHARACTERS: Final = 600


@tool("gitStatus", access="read", timeout_s=TIMEOUT_S)
async def git_status(run: RunContext) -> str:
    """Show the branch, the other branches, and the files that were changed since the last commit."""
    status, branches = await _look(run, lambda found: (found.status(), found.branches()))
    lines = [f"On branch {status.branch}." if status.branch else "On no branch (detached HEAD)."]
    if status.commit is None:
        lines.append("There is no commit yet.")
    lines += _other_branches(branches)
    if not status.changes:
        return "\n".join([*lines, "Nothing is changed since the last commit.", *_hidden(status.hidden)])
    lines.append(f"Changed since the last commit ({len(status.changes)}{'' if status.complete else ' or more'}):")
    return "\n".join([*lines, *_files(run, status.changes), *_hidden(status.hidden)])


@tool("gitDiff", access="read", timeout_s=TIMEOUT_S)
async def git_diff(run: RunContext, path: str = ".", base: str = "", target: str = "") -> str:
    """Show the changed lines since the last commit, new files too; path narrows it to a file or folder.

    With base (a branch or commit, for example main or HEAD~2) compare with that; with target, compare the two.
    """
    characters = room(run, FEWEST_CHARACTERS)
    found = await _look(run, partial(Checkout.difference, base=base, target=target, path=path, patch_bytes=characters))
    if not found.changes:
        return "\n".join(["There is no difference.", *_hidden(found.hidden)])
    return _difference_text(run, found)


@tool("gitLog", access="read", timeout_s=TIMEOUT_S)
async def git_log(run: RunContext, path: str = ".", limit: int = 10, branch: str = "") -> str:
    """List the last commits, newest first: id, day, author, title. With path, only those that changed it."""
    most = min(limit, MOST_COMMITS, max(3, run.model.tool_output_tokens // TOKENS_PER_COMMIT))
    commits = await _look(run, partial(Checkout.log, revision=branch, path=path, limit=most))
    if not commits:
        return f"No commit changed {printable(path)}."
    return "\n".join(f"{each.short_id} {each.at[:10]} {each.author}: {each.subject}" for each in commits)


@tool("gitShow", access="read", timeout_s=TIMEOUT_S)
async def git_show(run: RunContext, commit: str = "HEAD", path: str = ".") -> str:
    """Show one commit: its message and the lines it changed. "HEAD~1:README.md" shows that file as it was then."""
    revision, colon, name = commit.partition(":")
    characters = room(run, FEWEST_CHARACTERS)
    if colon:
        text = await _look(run, partial(Checkout.file_at, revision=revision, path=name))
        return _cut(text, characters) or f"{printable(name)} is empty there."
    shown, found = await _look(run, partial(Checkout.show, revision=commit, path=path, patch_bytes=characters))
    head = _commit_head(shown, characters // 3)
    if not found.changes:
        return "\n".join([head, "It changed no files here.", *_hidden(found.hidden)])
    return f"{head}\n\n{_difference_text(run, found, used=len(head))}"


async def _look(run: RunContext, ask: Callable[[Checkout], T]) -> T:
    folder = workspace_of(run).folder

    def work(stopped: Callable[[], bool]) -> T:
        with checkout(folder, Bounds(time_s=GIT_TIMEOUT_S, stopped=stopped)) as found:
            return ask(found)

    return await in_thread(work)


def _difference_text(run: RunContext, found: Difference, used: int = 0) -> str:
    files = "\n".join([*_files(run, found.changes), *_hidden(found.hidden)])
    left = max(FEWEST_CHARACTERS // 2, room(run, FEWEST_CHARACTERS) - used - len(files))
    # What stands in the first lines of each file's patch beside its names is of no use to a reader.
    patch = "\n".join(line for line in found.patch.split("\n") if not line.startswith(("index ", "similarity index ")))
    cut = _cut(patch, left)
    note = "" if found.patch_complete and cut == patch else "\n(the rest is not shown; give the path of one file)"
    return f"{files}\n\n{cut}{note}" if cut else f"{files}{note}"


def _cut(text: str, most: int) -> str:
    """Return the whole lines that fit, with a note when some do not."""
    if len(text) <= most:
        return text
    return f"{text[: max(0, text.rfind(chr(10), 0, most))]}\n(cut: {len(text)} characters in all)"


def _files(run: RunContext, changes: Sequence[Change]) -> list[str]:
    most = min(MOST_FILES, max(5, run.model.tool_output_tokens // TOKENS_PER_FILE // 2))
    lines = [_file(change) for change in changes[:most]]
    if len(changes) > most:
        lines.append(f"({len(changes) - most} more files)")
    return lines


def _file(change: Change) -> str:
    before = f" (was {printable(change.before)})" if change.before else ""
    lines = "" if change.added is None or change.deleted is None else f" +{change.added} -{change.deleted}"
    return f"{change.kind}: {printable(change.path)}{before}{lines}"


def _hidden(count: int) -> list[str]:
    return [f"({count} hidden from agents)"] if count else []


def _other_branches(branches: Sequence[Branch]) -> list[str]:
    others = [branch.name for branch in branches if not branch.current]
    if not others:
        return []
    more = f" and {len(others) - SHOWN_BRANCHES} more" if len(others) > SHOWN_BRANCHES else ""
    return [f"Other branches: {', '.join(others[:SHOWN_BRANCHES])}{more}."]


def _commit_head(commit: Commit, most: int) -> str:
    parents = " (a merge: compared with its first parent)" if len(commit.parents) > 1 else ""
    return f"commit {commit.short_id} {commit.at[:10]} {commit.author}{parents}\n{_cut(commit.message, most)}"
