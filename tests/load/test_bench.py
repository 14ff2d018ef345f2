from __future__ import annotations

from pathlib import Path

import pytest
import uvloop

from tests.load import agents, delegation, first_token, page, sandbox
from tests.load.figures import Figures
from tests.suite import Suite


def test_the_first_token_benchmark_measures_turns_and_loses_none(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path))
    figures = Figures("first-token")

    lost = uvloop.run(first_token.measure(suite, first_token.QUICK, figures))

    assert lost == []
    assert figures.write().is_file()
    assert figures.figures["added first token, one at a time, p50"].value > 0
    assert figures.figures["closed loop of 20"].value > 0
    assert figures.figures["turns lost"].holds


def test_the_sandbox_benchmark_measures_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path))
    figures = Figures("sandbox")

    sandbox.measure(sandbox.QUICK, figures)

    assert figures.write().is_file()
    # What bubblewrap adds is a difference: on a busy machine a few commands may show less than none.
    assert all(figure.value > 0 for name, figure in figures.figures.items() if "overhead" not in name)
    assert [path.name for path in figures.folder.iterdir()] == ["sandbox.json"]


def test_the_delegation_benchmark_measures_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path))
    figures = Figures("delegation")

    uvloop.run(delegation.measure(delegation.QUICK, figures))

    assert figures.write().is_file()
    assert figures.figures["turn with one delegation, p99"].value > 0
    assert figures.figures["turns lost"].holds


def test_the_agents_benchmark_measures_every_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path))
    figures = Figures("agents")

    uvloop.run(agents.measure(agents.QUICK, figures))

    assert figures.write().is_file()
    assert all(figure.value > 0 for figure in figures.figures.values())
    assert [path.name for path in figures.folder.iterdir()] == ["agents.json"]


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_page_benchmark_measures_every_figure(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path))
    figures = Figures("page")

    uvloop.run(page.measure(suite, page.QUICK, figures))

    assert figures.write().is_file()
    assert figures.figures["first load to usable composer, p50"].value > 0
    assert figures.figures["input to painted character while 100 tokens/s stream, p95"].value > 0
    assert figures.figures["largest layout shift while an answer streams and ends"].holds
    assert figures.figures["up through a chat of 200 messages, messages seen"].holds
    assert figures.figures["the same, worst jump of what is read"].holds
