"""docs/api.md names every route, and each of its commands answers what the page says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from popagent_kit.settings import clone_root
from tests.suite import Suite

ROOT = clone_root() or Path()
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### `(\w+ \S+)` → (\d+)\n(.*?)(?=^##|\Z)", re.M | re.S)
COMMAND = re.compile(r"```sh\n(.*?)```", re.S)


def test_the_page_names_every_route_and_no_other() -> None:
    paths = json.loads((ROOT / "proto" / "openapi.json").read_text(encoding="utf-8"))["paths"]

    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}

    assert {route for route, _, _ in SECTION.findall(PAGE)} == routes


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's commands are curl's")
def test_every_command_of_the_page_answers_as_it_says(suite: Suite) -> None:
    said, seen = {}, {}
    for route, status, text in SECTION.findall(PAGE):
        [command] = COMMAND.findall(text)
        said[route] = status
        seen[route] = status_of(command, suite)

    assert seen == said


def status_of(command: str, suite: Suite) -> str:
    """Run the command with the suite's key; a stream that goes on is left after two seconds."""
    script = (
        'curl() { command curl --silent --noproxy "*" --output /dev/null --write-out "%{http_code}" --max-time 10 '
        f'-H "x-popagent-key: {suite.key}" "$@"; }}\n'
        f"P={suite.base_url}\n{command}"
    )
    if "/events" in command:
        script = script.replace("--max-time 10", "--max-time 2")
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, check=False).stdout
