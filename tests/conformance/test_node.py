"""Node for the official client: the machine's, else the development packages'; in CI its absence is a failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance import official_client


def test_the_development_packages_bring_node_and_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(official_client, "PATH", str(Path(sys.executable).parent))

    versions = {
        name: subprocess.run(
            [official_client.program(name), "--version"],
            env={"PATH": "", "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in ("node", "npm")
    }

    assert versions["node"].startswith("v24.")
    assert versions["npm"].strip()


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_node_is_a_failure_in_ci_and_a_skip_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setattr(official_client, "PATH", str(tmp_path))
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match="node is not installed"):
        official_client.program("node")


def test_the_scripts_of_npm_find_node() -> None:
    assert official_client.PATH.split(os.pathsep)[-1] == str(Path(sys.executable).parent)


def test_a_node_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "node"
    old.write_text("#!/bin/sh\necho v20.1.0\n", encoding="utf-8")
    old.chmod(0o755)
    own = str(Path(sys.executable).parent)
    monkeypatch.setattr(official_client, "PATH", os.pathsep.join((str(tmp_path), own)))

    assert official_client.program("node", 20) == str(old)
    assert official_client.program("node", 22) == str(Path(own) / "node")


def test_the_page_speaks_with_the_client_that_is_asked() -> None:
    root = Path(__file__).parents[2]
    page = json.loads((root / "services/gateway/ui/package.json").read_text(encoding="utf-8"))
    asked = json.loads((official_client.FOLDERS[7] / "package.json").read_text(encoding="utf-8"))

    assert page["dependencies"]["ai"] == asked["dependencies"]["ai"]
