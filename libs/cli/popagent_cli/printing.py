"""How results look: aligned columns that fit the terminal, local times, JSON where it was asked for."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import click

from popagent_cli.safe_text import one_safe_line, safe_json
from popagent_kit import json

as_json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
GAP: Final = 2
NARROWEST: Final = 8


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    click.echo(safe_json(json.dumps(value).decode()))


def tell(answer: Any, sentence: str, *, as_json: bool) -> None:
    """Print what was done as a sentence, or the answer itself where JSON was asked for."""
    if as_json:
        print_json(answer)
    else:
        click.echo(sentence)


def note(text: str) -> None:
    """Tell something about the result, on standard error, dimmed on a terminal."""
    click.echo(dim(text, sys.stderr), err=True)


def dim(text: str, stream: Any) -> str:
    """Return `text` in a weaker colour, where `stream` shows colours."""
    return click.style(text, dim=True) if wants_colour(stream) else text


def wants_colour(stream: Any) -> bool:
    """Tell whether `stream` is a terminal whose user did not ask for plain text."""
    from popagent_local.output import wants_colour as wanted  # noqa: PLC0415 (not every command prints colours)

    return wanted(stream)


def terminal_width() -> int:
    """Return the columns of the terminal; without one, more than any line has."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 10_000


def width(text: str) -> int:
    """Return the columns that `text` takes; East Asian wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def fit(text: str, columns: int) -> str:
    """Return `text` cut to `columns`, with an ellipsis where something is missing."""
    if width(text) <= columns:
        return text
    kept: list[str] = []
    used = 1
    for char in text:
        used += width(char)
        if used > columns:
            break
        kept.append(char)
    return "".join(kept) + "…"


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, flexible: int = -1) -> None:
    """Print aligned columns; column `flexible` gives way when the line is longer than the terminal is wide.

    A head that begins with `>` is aligned to the right; a column without a head vanishes when it says nothing.
    """
    shown = [index for index, head in enumerate(heads) if head or any(row[index] for row in rows)]
    flexible = shown.index(flexible % len(heads))
    heads = [heads[index] for index in shown]
    table = [[one_safe_line(row[index], 2_000) for index in shown] for row in rows]
    right = [head.startswith(">") for head in heads]
    names = [head.removeprefix(">") for head in heads]
    widths = [max(width(line[index]) for line in [names, *table]) for index in range(len(heads))]
    spare = terminal_width() - sum(widths) - GAP * (len(widths) - 1)
    if spare < 0:
        widths[flexible] = max(NARROWEST, widths[flexible] + spare)
    for number, line in enumerate([names, *table]):
        cells = [_aligned(cell, columns, at_right) for cell, columns, at_right in zip(line, widths, right, strict=True)]
        text = (" " * GAP).join(cells).rstrip()
        click.echo(dim(text, sys.stdout) if number == 0 else text)


def _aligned(cell: str, columns: int, at_right: bool) -> str:
    cell = fit(cell, columns)
    padding = " " * (columns - width(cell))
    return padding + cell if at_right else cell + padding


def local_time(wire: str | None) -> str:
    """Return a wire time in this machine's zone, to the minute; empty for none."""
    return datetime.fromisoformat(wire).astimezone().strftime("%Y-%m-%d %H:%M") if wire else ""


def duration(milliseconds: float | None) -> str:
    """Return a duration to about three digits."""
    if milliseconds is None:
        return "running"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"
    seconds = milliseconds / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min" + (f" {int(seconds % 60)} s" if seconds % 60 >= 1 else "")


def size(byte_count: int) -> str:
    """Return a size to about two digits."""
    if byte_count < 1_000:
        return f"{byte_count} B"
    for unit, factor in (("kB", 1e3), ("MB", 1e6), ("GB", 1e9)):
        if byte_count < factor * 1_000 or unit == "GB":
            return f"{byte_count / factor:.1f} {unit}"
    raise AssertionError
