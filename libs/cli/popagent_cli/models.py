"""`popagent models`: which models can answer, and the connection to their server."""

from __future__ import annotations

import sys
from typing import Any

import click

from popagent_cli.client import Client, with_client
from popagent_cli.errors import FAILED
from popagent_cli.printing import as_json_option, note, print_json, print_table
from popagent_cli.safe_text import one_safe_line
from popagent_cli.secret_input import given_secret, secret_option
from popagent_kit.settings import command
from popagent_local.groups import Group

CONNECTION = "/api/models/connection"
SOURCES = {
    "environment": "POPAGENT_MODEL_URL",
    "page": "saved here or in the page",
    "embedded": "the embedded model",
    "none": "nothing is connected",
}

key_option = secret_option(
    "--key",
    "Where the key comes from: asked without showing it, the first line of standard input, or none is wanted.",
)


@click.group(cls=Group, invoke_without_command=True)
@as_json_option
@click.option("--url", "nearer_url", default=None, hidden=True)
@click.pass_context
def models(ctx: click.Context, as_json: bool, nearer_url: str | None) -> None:
    """Show which models can answer."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models, as_json=as_json, nearer_url=nearer_url)


@models.command(name="list")
@as_json_option
@with_client
def list_models(client: Client, as_json: bool) -> None:
    """Show which models can answer."""
    view = client.get("/api/models")
    if as_json:
        print_json(view)
        return
    windows = view["contextWindows"]
    rows = [
        [model, f"{windows[model]:,}" if model in windows else "unknown", "*" if model == view["defaultModel"] else ""]
        for model in view["models"]
    ]
    if rows:
        print_table(["MODEL", ">CONTEXT TOKENS", "DEFAULT"], rows, flexible=0)
    elif view["known"]:
        note("The model endpoint answers, but offers no model.")
    if not view["known"]:
        note(f"The model endpoint does not say which models it has; any id may be tried: {command('chat --model ID')}")
    if view["note"]:
        note(one_safe_line(view["note"], 600))


@models.command()
@as_json_option
@with_client
def connection(client: Client, as_json: bool) -> None:
    """Show where answers come from."""
    _show(client.get(CONNECTION), as_json)


@models.command()
@click.argument("url")
@key_option
@as_json_option
@with_client
def connect(client: Client, url: str, secret_from: str | None, as_json: bool) -> None:
    """Use the model server at URL from the next run on; without --key the stored key stays."""
    body = {"url": url, **given_secret("key", secret_from)}
    revision = client.get(CONNECTION)["revision"]
    saved = client.send("PUT", CONNECTION, {"revision": revision, **body})
    _show(saved, as_json)
    if saved["lastError"] and not as_json:
        note(f"It is saved all the same. Take it back: {command('models disconnect')}")


@models.command()
@as_json_option
@with_client
def disconnect(client: Client, as_json: bool) -> None:
    """Forget the saved server and its key; the embedded model answers again, if there is one."""
    _show(client.send("DELETE", CONNECTION), as_json)


@models.command()
@click.argument("url")
@click.option("--model", help="Ask this one for a few words; by default one of the server's list.")
@key_option
@as_json_option
@with_client
def test(client: Client, url: str, model: str | None, secret_from: str | None, as_json: bool) -> None:
    """Try a model server; nothing is stored. Exit code 1 when it does not answer."""
    body = {"url": url, **({"model": model} if model else {}), **given_secret("key", secret_from)}
    found = client.send("POST", f"{CONNECTION}/test", body)
    if as_json:
        print_json(found)
    else:
        click.echo(one_safe_line(found["sentence"], 600))
        if found["models"]:
            names = ", ".join(one_safe_line(name, 80) for name in found["models"][:10])
            more = f" and {found['modelCount'] - 10:,} more" if found["modelCount"] > 10 else ""
            note(f"Its models: {names}{more}")
        if found["ok"]:
            note(f"Use it: {command(f'models connect {url}')}")
    sys.exit(0 if found["ok"] else FAILED)


@models.command()
@as_json_option
@with_client
def detect(client: Client, as_json: bool) -> None:
    """Look for model servers on the machine that popagent runs on; none of them is used by that."""
    found = client.get("/api/models/detect")
    if as_json:
        print_json(found)
        return
    rows = [
        [row["name"], row["url"], "wants a key" if row["needsKey"] else ", ".join(row["models"][:5]) or "no model yet"]
        for row in found["items"]
    ]
    if not rows:
        note("No model server answers at one of the usual ports of that machine.")
        return
    print_table(["SERVER", "URL", "MODELS"], rows, flexible=2)
    note(f"Use one: {command('models connect URL')}")


def _show(view: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(view)
        return
    hint = f", ending in {view['keyHint']}" if view["keyHint"] else ""
    rows = [
        ["source", SOURCES.get(view["source"], view["source"])],
        ["url", view["url"] or "-"],
        ["key", f"yes{hint}" if view["hasKey"] else "none"],
        ["model", view["model"] or "-"],
        ["embedded model", view["embedded"]["note"]],
    ]
    print_table(["CONNECTION", ""], [[name, one_safe_line(value, 300)] for name, value in rows], flexible=1)
    if view["lastError"]:
        note(one_safe_line(view["lastError"], 600))
