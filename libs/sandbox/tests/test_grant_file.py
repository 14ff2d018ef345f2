"""What an operator writes for a workspace's commands, and what is said when it cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from popagent_sandbox.grant_file import NOTHING, GrantFileError, grant_file, granted
from popagent_sandbox.grants import Grant, Mount
from popagent_telemetry import redact

WHOLE = """
path = ["/opt/node/bin"]
prepare = "npm ci"

[[mounts]]
source = "/srv/node"
target = "/opt/node"

[environment]
CI = "1"
SERVICE_TOKEN = "a-quiet-heron"
"""


def write(home: Path, content: str | bytes, path: str = "group/project") -> None:
    place = grant_file(home, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)


def test_without_a_file_nothing_is_given(tmp_path: Path) -> None:
    write(tmp_path, WHOLE, "group")

    assert granted(tmp_path, "other") == NOTHING
    assert granted(tmp_path, "group.toml/deeper") == NOTHING


def test_everything_a_file_may_hold(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)

    found = granted(tmp_path, "group/project")

    environment = {"CI": "1", "SERVICE_TOKEN": "a-quiet-heron"}
    assert found.grant == Grant((Mount("/srv/node", "/opt/node"),), ("/opt/node/bin",), environment)
    assert found.prepare == "npm ci"
    assert "a-quiet-heron" not in redact("it said a-quiet-heron")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("path = [", "Invalid value"),
        ("paths = []", "paths: Extra inputs"),
        ('path = ["bin"]', "not a plain absolute path"),
        ('path = "/bin"', "path: Input should be a valid list"),
        ('[[mounts]]\nsource = "/srv"\ntarget = "/usr"', "cannot be mounted on"),
        ('[[mounts]]\nsource = "/srv"', "mounts.0.target: Field required"),
        ('[environment]\nPATH = "/x"', "PATH cannot be set"),
        ("[environment]\nN = 1", "environment.N: Input should be a valid string"),
        ('prepare = ""', "prepare: "),
        (b"\xff", "utf-8"),
        ("a" * 70_000, "65536 bytes"),
        ("x = " + "[" * 5_000, "cannot be used"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(tmp_path: Path, content: str | bytes, reason: str) -> None:
    write(tmp_path, content)

    with pytest.raises(GrantFileError, match=r"sandbox/group/project\.toml") as refused:
        granted(tmp_path, "group/project")

    assert reason in refused.value.message
    assert str(tmp_path) not in refused.value.message


def test_a_folder_in_its_place_is_told_of(tmp_path: Path) -> None:
    grant_file(tmp_path, "project").mkdir(parents=True)

    with pytest.raises(GrantFileError, match="Is a directory"):
        granted(tmp_path, "project")
