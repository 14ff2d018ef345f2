"""The process itself, where no weights are needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from popagent_local.model_server.llama import huge_pages
from popagent_local.model_server.settings import ModelServerSettings

COMMAND = [sys.executable, "-m", "popagent_local.model_server", "--port", "0", "--api-key-env", "TEST_MODEL_KEY"]


def run(tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    surroundings = {"PATH": os.environ["PATH"], "POPAGENT_CACHE": str(tmp_path), "POPAGENT_HOME": str(tmp_path)}
    return subprocess.run(COMMAND, capture_output=True, text=True, timeout=60, check=False, env={**surroundings, **env})


def test_without_weights_the_process_ends_and_says_what_to_do(tmp_path: Path) -> None:
    ended = run(tmp_path, TEST_MODEL_KEY="some-key-or-other")

    assert ended.returncode == os.EX_CONFIG
    assert "popagent model pull" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_a_key_the_process_does_not_open_its_door(tmp_path: Path) -> None:
    ended = run(tmp_path)

    assert ended.returncode == os.EX_CONFIG
    assert "TEST_MODEL_KEY must hold the key" in ended.stderr


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (None, "glibc.malloc.hugetlb=1"),
        ("glibc.malloc.arena_max=2", "glibc.malloc.arena_max=2:glibc.malloc.hugetlb=1"),
    ],
)
def test_huge_pages_are_asked_for_beside_what_is_tuned_already(
    given: str | None, passed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if given is not None:
        monkeypatch.setenv("GLIBC_TUNABLES", given)

    assert huge_pages() == {"GLIBC_TUNABLES": passed}


@pytest.mark.parametrize(
    ("cores", "given", "threads"), [(1, None, (1, 1)), (2, None, (1, 2)), (8, None, (7, 8)), (8, "3", (3, 3))]
)
def test_one_core_is_left_to_the_suite_while_the_model_writes(
    cores: int, given: str | None, threads: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)

    settings = ModelServerSettings.load({} if given is None else {"POPAGENT_MODEL_THREADS": given}, {})

    assert (settings.thread_count(), settings.prompt_thread_count()) == threads
