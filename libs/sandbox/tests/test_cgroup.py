"""The control groups that bound root's programs, apart from a sandbox."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from popagent_sandbox import cgroup


@pytest.fixture
def sleeping() -> Iterator[list[int]]:
    started = [subprocess.Popen(["sleep", "100"]) for _ in range(8)]
    yield [process.pid for process in started]
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes control groups")
def test_many_that_make_groups_at_once_do_not_take_them_for_left_ones(sleeping: list[int]) -> None:
    if cgroup.bounded(sleeping[0], 10) is None:
        pytest.skip("root may make no control group here")

    with ThreadPoolExecutor(len(sleeping)) as threads:
        made = list(threads.map(lambda pid: [cgroup.bounded(pid, 10) for _ in range(8)], sleeping))

    assert not any(group is None for groups in made for group in groups)


def test_where_no_group_can_be_made_that_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cgroup, "ROOT", tmp_path / "nowhere")
    cgroup._note_missing.cache_clear()

    with caplog.at_level(logging.INFO):
        assert [cgroup.bounded(os.getpid(), 10) for _ in range(3)] == [None] * 3

    assert [record.message for record in caplog.records] == ["no control group for a sandbox"]
