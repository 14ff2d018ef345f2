"""The guard of all async tests, tried on test files of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CASES = """
import asyncio
import pytest

async def fail():
    raise ValueError("nobody asked")

def raise_now():
    raise ValueError("in a callback")

async def leave_task():
    task = asyncio.create_task(fail())
    await asyncio.wait([task])

async def test_task():
    await leave_task()

async def test_callback():
    asyncio.get_running_loop().call_soon(raise_now)
    await asyncio.sleep(0.01)

@pytest.mark.loop_errors
async def test_marked():
    await leave_task()

async def test_clean():
    with pytest.raises(ValueError):
        await fail()
"""


@pytest.fixture
def outcome(tmp_path: Path) -> str:
    (tmp_path / "test_cases.py").write_text(CASES)
    options = ["-q", "-rA", "-p", "popagent_testing.plugin", "-o", "asyncio_mode=auto", "-o", "markers=loop_errors"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def test_an_error_that_nobody_saw_fails_its_test_unless_it_is_meant(outcome: str) -> None:
    failed = {
        line.split("::")[1].split(" ")[0] for line in outcome.splitlines() if line.startswith("ERROR ") and "::" in line
    }

    assert failed == {"test_task", "test_callback"}
    assert "nobody asked" in outcome
    assert "in a callback" in outcome
