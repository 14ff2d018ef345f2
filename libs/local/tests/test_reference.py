from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from popagent_kit.settings import clone_root
from popagent_local import config, reference

ROOT = clone_root() or Path()
VARIABLE = re.compile(r'"((?:POPAGENT_[A-Z_]+|(?:OBSERVABILITY_)?DATABASE_URL|NATS_URL))"')
# Handed from `up` to a program of its own, never set by a person.
BETWEEN_PROGRAMS = {
    "POPAGENT_LLAMA_KEY",
    "POPAGENT_MODEL_SERVER_KEY",
    "POPAGENT_VERSION",
}
# Named in the table of guarded variables before the part that reads them exists.
RESERVED = {"POPAGENT_EMBEDDING_API_KEY"}


def variables_in_code() -> Iterator[str]:
    for top in ("libs", "services", "proto"):
        for path in (ROOT / top).rglob("*.py"):
            if "tests" not in path.parts and "popagent_testing" not in path.parts:
                yield from VARIABLE.findall(path.read_text(encoding="utf-8"))


def test_the_written_reference_and_example_are_what_the_settings_say() -> None:
    written = {path: path.read_text(encoding="utf-8") for path in reference.files(ROOT)}

    assert written == reference.files(ROOT), "run `make contracts`"


def test_every_variable_that_the_code_reads_is_declared_by_a_settings_class() -> None:
    declared = {row.env for row in config.rows()}

    undeclared = set(variables_in_code()) - declared - BETWEEN_PROGRAMS - RESERVED

    assert undeclared == set()


def test_a_difference_is_told_with_exit_code_1_and_nothing_is_written(tmp_path: Path, monkeypatch, capsys) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(reference, "clone_root", lambda: tmp_path)

    refused = reference.main(["--check"])
    nothing = list((tmp_path / "docs").iterdir())
    written = reference.main([])
    accepted = reference.main(["--check"])

    assert (refused, written, accepted, nothing) == (1, 0, 0, [])
    assert "make contracts" in capsys.readouterr().out
