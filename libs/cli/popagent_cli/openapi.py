"""`popagent openapi`: the description of the HTTP API."""

from __future__ import annotations

import click

from popagent_cli.client import Client, with_client
from popagent_cli.printing import print_json


@click.command()
@with_client
def openapi(client: Client) -> None:
    """Print the description of the HTTP API (OpenAPI, JSON)."""
    print_json(client.get("/api/openapi.json"))
