"""`popagent model pull|list|path`."""

from __future__ import annotations

import click

from popagent_kit import json
from popagent_kit.errors import AppError
from popagent_local.groups import Group
from popagent_local.model_server import weights
from popagent_local.model_server.progress import Meter


@click.group(cls=Group)
def model() -> None:
    """The weights of the embedded model."""


@model.command()
def pull() -> None:
    """Fetch what is missing, about 1.2 GB; goes on where an earlier pull stopped."""
    try:
        weights.pull(progress=Meter())
    except AppError as error:
        raise click.ClickException(error.message) from error


@model.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_files(as_json: bool) -> None:
    """Show every file, its size, and where it lies."""
    try:
        rows = weights.list_models()
    except AppError as error:
        raise click.ClickException(error.message) from error
    if as_json:
        items = [
            {
                "name": row.name,
                "title": row.title,
                "licence": row.licence,
                "sizeBytes": row.size_bytes,
                "sha256": row.sha256,
                "path": str(row.path) if row.path else None,
                "pinned": row.pinned,
            }
            for row in rows
        ]
        click.echo(json.dumps({"items": items}).decode())
        return
    for row in rows:
        place = str(row.path) if row.path else "missing: popagent model pull"
        click.echo(f"{row.name:<10} {row.size_bytes / 1e6:>7,.1f} MB  {row.title}, {row.licence}\n{'':<10} {place}")


@model.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def path(as_json: bool) -> None:
    """Print the file of the chat model; fails when it is not there."""
    try:
        found = weights.paths()
    except AppError as error:
        raise click.ClickException(error.message) from error
    if found is None:
        raise click.ClickException("The weights are not complete. Run: popagent model pull")
    click.echo(json.dumps({"path": str(found.chat)}).decode() if as_json else str(found.chat))
