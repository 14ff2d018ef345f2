"""`popagent docs-import` and `docs-export`: documentation from and to files of this machine."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from popagent_cli.client import Client, with_client
from popagent_cli.docs import ENDINGS, docs_of, in_workspace
from popagent_cli.errors import CliError
from popagent_cli.jobs import follow_command, followed, wait_option
from popagent_cli.printing import as_json_option, note, tell
from popagent_cli.safe_text import one_safe_line

ZIP: Final = "application/zip"
MARKDOWN: Final = "text/markdown"
LARGEST: Final = 64 * 1024 * 1024
SILENCE_S: Final = 60.0
SHOWN_NOTES: Final = 10


@click.command()
@click.argument("place", metavar="FOLDER-OR-FILE")
@click.option("--into", help="A folder of the documentation; else its root.")
@click.option("--source", help="What it is a later state of; else the name of FOLDER-OR-FILE.")
@in_workspace
@wait_option
@as_json_option
@with_client
def docs_import(
    client: Client,
    place: str,
    *,
    into: str | None,
    source: str | None,
    workspace: str | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Import the Markdown files of a folder, a zip or one file.

    Done again, it brings up to date what came from the same source, and leaves alone what was changed here as well.
    Hidden files, links and notes that are archived are left out.
    """
    path = Path(place)
    name, content, media_type = _upload_of(path)
    docs = docs_of(client, workspace)
    params = {"name": name, "source": source or path.resolve().name, "into": into}
    job = client.upload(f"{docs}/import", content, media_type, params)
    if not wait:
        tell(job, f"It is being imported; follow it: {follow_command(job)}", as_json=as_json)
        return
    job = followed(client, job)
    tell(job, _told(job["result"] or {}), as_json=as_json)
    for each in (job["result"] or {}).get("notes", [])[:SHOWN_NOTES]:
        note(f"{one_safe_line(each['path'], 120)}: {one_safe_line(each['reason'], 200)}")


@click.command()
@click.argument("place", metavar="FOLDER-OR-ZIP")
@click.option("--folder", help="Only what is below this folder of the documentation.")
@in_workspace
@as_json_option
@with_client
def docs_export(client: Client, place: str, *, folder: str | None, workspace: str | None, as_json: bool) -> None:
    """Write the pages of a workspace into a new folder, or into a file that ends in .zip."""
    target = Path(place)
    if target.exists() and (target.suffix.lower() == ".zip" or not target.is_dir() or any(target.iterdir())):
        raise CliError(f"{place} is there already; choose a new place or an empty folder.")
    params = {"folder": folder} if folder else None
    with client.stream("GET", f"{docs_of(client, workspace)}/export", params=params, silence_s=SILENCE_S) as answer:
        content = b"".join(answer.iter_bytes())
    pages = _written(target, content)
    tell({"path": place, "pages": pages}, f"{pages:,} pages are written to {place}", as_json=as_json)


def _upload_of(path: Path) -> tuple[str, bytes, str]:
    try:
        if path.is_dir():
            name, content, media_type = f"{path.resolve().name}.zip", _zipped(path), ZIP
        elif path.suffix.lower() in ENDINGS:
            name, content, media_type = path.name, path.read_bytes(), MARKDOWN
        else:
            name, content, media_type = path.name, path.read_bytes(), ZIP
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}.") from error
    if len(content) > LARGEST:
        raise CliError(f"{path} is more than 64 MB; import its folders one by one.")
    return name, content, media_type


def _zipped(folder: Path) -> bytes:
    """Return the Markdown files of a folder, and its folders; nothing hidden, and no link is followed."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(folder):
            archive.write(path, path.relative_to(folder).as_posix())
    return content.getvalue()


def _files(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda each: each.name)
    for entry in listed:
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        path = Path(entry.path)
        if entry.is_dir():
            yield from _files(path)
        elif entry.is_file() and path.suffix.lower() in ENDINGS:
            yield path


def _written(target: Path, content: bytes) -> int:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            pages = sum(not info.is_dir() for info in archive.infolist())
            if target.suffix.lower() == ".zip":
                target.write_bytes(content)
            else:
                target.mkdir(parents=True, exist_ok=True)
                archive.extractall(target)
    except (zipfile.BadZipFile, OSError) as error:
        raise CliError(f"{target} cannot be written: {error}.") from error
    return pages


def _told(result: dict[str, Any]) -> str:
    names = {"created": "new", "updated": "brought up to date", "unchanged": "unchanged", "kept": "kept as they are",
             "leftOut": "left out"}  # fmt: skip
    counted = [f"{result.get(name, 0):,} {words}" for name, words in names.items() if result.get(name)]
    return ", ".join(counted) or "Nothing was there to import"
