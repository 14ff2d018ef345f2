from __future__ import annotations

from pathlib import Path

import pytest
import uvloop

from tests.load.figures import Figures
from tests.load.first_token import QUICK, measure
from tests.suite import Suite


def test_the_first_token_benchmark_measures_turns_and_loses_none(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path))
    figures = Figures("first-token")

    lost = uvloop.run(measure(suite, QUICK, figures))

    assert lost == []
    assert figures.write().is_file()
    assert figures.figures["added first token, one at a time, p50"].value > 0
    assert figures.figures["closed loop of 20"].value > 0
    assert figures.figures["turns lost"].holds
