"""The tools that look at files of the run's workspace; outputs are short enough for a small model."""

from __future__ import annotations

import asyncio

from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool
from popagent_kit.clock import wire_time
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.errors import PathMissingError
from popagent_sandbox.listing import Entry, list_folder, similar_paths
from popagent_sandbox.paths import printable
from popagent_sandbox.reading import FileText, read_text, stat_path
from popagent_sandbox.searching import SearchResult
from popagent_sandbox.searching import grep as search
from popagent_tools.workspace import in_thread, room, workspace_of

# A line of a listing or of a search takes about this many tokens.
TOKENS_PER_ENTRY = 12
TOKENS_PER_MATCH = 24
MOST_ENTRIES = 400
MOST_MATCHES = 200
FEWEST_CHARACTERS = 200


@tool("list", access="read", timeout_s=15)
async def list_files(run: RunContext, path: str = ".") -> str:
    """List the files and folders in a folder of the workspace. Start with path "." to see the top folder."""
    folder = workspace_of(run).folder
    limit = min(MOST_ENTRIES, run.model.tool_output_tokens // TOKENS_PER_ENTRY)
    listing = await asyncio.to_thread(list_folder, folder, path, depth=2, limit=limit)
    lines = [_entry_line(entry) for entry in listing.entries]
    if not lines:
        lines = ["(empty folder)"]
    if listing.hidden:
        lines.append(f"({listing.hidden} hidden from agents)")
    if not listing.complete:
        lines.append("(more entries are not shown; list a subfolder, or use grep)")
    return "\n".join(lines)


@tool("read", access="read", timeout_s=15)
async def read_file(run: RunContext, path: str, line: int = 1) -> str:
    """Read a text file of the workspace, for example README.md. To read on, give the line to start from."""
    folder = workspace_of(run).folder
    characters = room(run, FEWEST_CHARACTERS)
    try:
        text = await asyncio.to_thread(read_text, folder, path, offset=line, characters=characters)
    except PathMissingError as error:
        raise await with_similar(folder, path, error) from error
    run.reads.saw(text)
    return _read_lines(text)


@tool("grep", access="read", timeout_s=15)
async def grep_files(run: RunContext, pattern: str, path: str = ".") -> str:
    """Find the lines that contain a word or regular expression, in all files below a folder or in one file."""
    folder = workspace_of(run).folder
    limit = min(MOST_MATCHES, max(5, run.model.tool_output_tokens // TOKENS_PER_MATCH))
    result = await in_thread(
        lambda stopped: search(folder, pattern, path, limit=limit, limit_per_file=max(3, limit // 4), stopped=stopped)
    )
    return _search_lines(result, pattern)


@tool("stat", access="read", timeout_s=15)
async def stat_file(run: RunContext, path: str) -> str:
    """Tell whether a path is a file or a folder, its size and when it was changed."""
    info = await asyncio.to_thread(stat_path, workspace_of(run).folder, path)
    size = f", {info.size_bytes} bytes" if info.kind == "file" else ""
    return f"{printable(info.path)}: {info.kind}{size}, changed {wire_time(info.modified_at)}"


async def with_similar(folder: ContainedFolder, path: str, error: PathMissingError) -> PathMissingError:
    """A model that misspells a name finds it at its next call."""
    similar = await asyncio.to_thread(similar_paths, folder, path)
    if not similar:
        return PathMissingError(f"{error.message} Use list or grep to find it.")
    return PathMissingError(f"{error.message} There is: {', '.join(map(printable, similar))}.")


def _entry_line(entry: Entry) -> str:
    path = printable(entry.path)
    if entry.kind == "folder":
        return f"{path}/ (not shown)" if entry.skipped else f"{path}/"
    if entry.kind == "link":
        return f"{path} (link)"
    return path if entry.kind == "file" else f"{path} (special file)"


def _read_lines(text: FileText) -> str:
    name = printable(text.path)
    if text.total_lines == 0:
        return f"{name} is empty."
    if text.last_line == 0:
        return f"{name} has only {text.total_lines} lines."
    if text.complete:
        return text.text
    head = f"[{name}, lines {text.first_line}-{text.last_line} of {text.total_lines}]"
    more = f"\n[If this answers the question, answer now. More of the file: line={text.last_line + 1}]"
    rest = more if text.last_line < text.total_lines else ""
    return f"{head}\n{text.text}{rest}"


def _search_lines(result: SearchResult, pattern: str) -> str:
    notes = []
    if result.literal:
        notes.append("(the pattern is no valid regular expression and was searched as plain text)")
    if result.ended == "limit":
        notes.append("(there are more; use a narrower pattern or path)")
    elif result.ended:
        notes.append("(the search ended early; search in a smaller folder)")
    if result.too_large:
        notes.append(f"({result.too_large} files were too large to search)")
    if not result.matches:
        return "\n".join([f"No line matches {pattern[:100]!r} in {result.files} files.", *notes])
    lines = []
    previous = ""
    for match in result.matches:
        if match.path != previous:
            lines.append(printable(match.path))
            previous = match.path
        lines.append(f"  {match.line}: {match.text}")
    return "\n".join([*lines, *notes])
