"""The weights on this machine: one shared cache, each file checked against its pinned digest before it is used."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from popagent_kit import json
from popagent_kit.errors import AppError, ConfigurationError, DependencyError, MalformedJsonError
from popagent_kit.settings import Settings, cache_folder, setting
from popagent_local.model_server import artefacts as known
from popagent_local.model_server.artefacts import Artefact
from popagent_local.model_server.progress import Progress, Quiet
from popagent_local.model_server.sources import Folder, Hub, Registry, Source, SourceRefusedError

log = logging.getLogger(__name__)

# What a download must leave free: a full disk stops databases too.
SPARE_DISK_BYTES: Final = 256_000_000


class WeightSettings(Settings):
    """Where weights are looked for."""

    model_path: Path | None = setting(
        "POPAGENT_MODEL_PATH",
        None,
        description="A GGUF chat model of your own, or a folder that holds the files `popagent model list` names.",
    )


class DiskFullError(AppError):
    """There is not enough free disk space for the weights."""

    code = "disk_full"
    http_status = 507


@dataclass(frozen=True)
class Weights:
    """Files that are complete and checked; `pinned` is False for a chat model that the user brought."""

    chat: Path
    chat_sha256: str
    pinned: bool
    embedding: Path
    tokenizer: Path

    @property
    def chat_id(self) -> str:
        """The model id on the wire; a model of one's own is called like its file, in lower case, without the ending."""
        return known.CHAT_MODEL_ID if self.pinned else self.chat.stem.lower()


@dataclass(frozen=True)
class ModelState:
    """One row of `popagent model list`; `path` is None when the file is not there or not complete."""

    name: str
    title: str
    licence: str
    size_bytes: int
    sha256: str
    path: Path | None
    pinned: bool


@dataclass(frozen=True)
class Record:
    """What was true of a file when its digest was computed; while it holds, the file is not read again."""

    path: str
    size_bytes: int
    modified_ns: int
    sha256: str


def models_folder() -> Path:
    """Return the folder of all weights, shared by every home and clone of this user."""
    return cache_folder() / "models"


def pull(
    artefacts: Sequence[Artefact] | None = None,
    *,
    progress: Progress | None = None,
    settings: WeightSettings | None = None,
    sources: Sequence[Source] | None = None,
) -> None:
    """Make `artefacts` present and checked, from the first source that gives them; what is there already is kept.

    None means everything the settings ask for. Two pulls at once: the second waits, then finds the files.

    Raises:
        ConfigurationError: POPAGENT_MODEL_PATH names nothing, or a folder with a file of another digest.
        DiskFullError: Too little free space; nothing was downloaded.
        DependencyError: No source could give a file; the message has each one's reason.
    """
    settings = settings or WeightSettings.load()
    shown = progress or Quiet()
    wanted = list(artefacts) if artefacts is not None else _needed(settings)
    folder = models_folder()
    folder.mkdir(parents=True, exist_ok=True)
    asked = list(sources) if sources is not None else _sources(settings)
    with _only_one(folder, shown):
        for artefact in wanted:
            if _checked(folder / artefact.file_name, artefact, folder) is None:
                _pull_one(artefact, folder, asked, shown)


def paths(settings: WeightSettings | None = None) -> Weights | None:
    """Return the checked files, or None when `pull` has something to do.

    A file without a record of its digest (copied there by hand) is read once, about a second a gigabyte.

    Raises:
        ConfigurationError: POPAGENT_MODEL_PATH names nothing.
    """
    settings = settings or WeightSettings.load()
    folder = models_folder()
    own = _own_model(settings)
    chat = _own_record(own, folder) if own else _checked(folder / known.CHAT.file_name, known.CHAT, folder)
    embedding = _checked(folder / known.EMBEDDING.file_name, known.EMBEDDING, folder)
    tokenizer = _checked(folder / known.TOKENIZER.file_name, known.TOKENIZER, folder)
    if chat is None or embedding is None or tokenizer is None:
        return None
    return Weights(Path(chat.path), chat.sha256, own is None, Path(embedding.path), Path(tokenizer.path))


def list_models(settings: WeightSettings | None = None) -> list[ModelState]:
    """Return every file that the model server uses, present or not.

    Raises:
        ConfigurationError: POPAGENT_MODEL_PATH names nothing.
    """
    settings = settings or WeightSettings.load()
    folder = models_folder()
    rows = []
    own = _own_model(settings)
    if own is not None:
        record = _own_record(own, folder)
        rows.append(ModelState("chat", own.name, "yours", record.size_bytes, record.sha256, own, False))
    for artefact in _needed(settings):
        found = _checked(folder / artefact.file_name, artefact, folder)
        path = Path(found.path) if found else None
        size, digest = artefact.size_bytes, artefact.sha256
        rows.append(ModelState(artefact.name, artefact.title, artefact.licence, size, digest, path, True))
    return rows


def _needed(settings: WeightSettings) -> list[Artefact]:
    return [known.EMBEDDING, known.TOKENIZER] if _own_model(settings) else list(known.ALL)


def _sources(settings: WeightSettings) -> list[Source]:
    given = settings.model_path
    folder: list[Source] = [Folder(given.expanduser())] if given and given.expanduser().is_dir() else []
    return [*folder, Hub(), Registry()]


def _own_model(settings: WeightSettings) -> Path | None:
    if settings.model_path is None:
        return None
    given = settings.model_path.expanduser().absolute()
    if given.is_file():
        return given
    if given.is_dir():
        return None
    raise ConfigurationError(f"POPAGENT_MODEL_PATH: there is no {given}", field="POPAGENT_MODEL_PATH")


def _pull_one(artefact: Artefact, folder: Path, sources: Sequence[Source], progress: Progress) -> None:
    scratch = folder / ".incoming" / artefact.sha256[:16]
    scratch.mkdir(parents=True, exist_ok=True)
    reasons = []
    for source in (source for source in sources if source.offers(artefact)):
        try:
            _check_disk(source.disk_bytes(artefact, scratch), folder)
            progress.start(f"{artefact.file_name} from {source.name}", artefact.size_bytes)
            found = source.fetch(artefact, scratch, progress)
            _accept(found, artefact, folder, source)
        except SourceRefusedError as refused:
            reason = f"{source.name}: {refused}"
            log.info("source of weights refused", extra={"file": artefact.file_name, "reason": reason})
            progress.note(f"{artefact.file_name} not from {reason}")
            reasons.append(reason)
            continue
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise DiskFullError(f"The disk became full while {artefact.file_name} was fetched.") from error
            raise
        progress.finish()
        shutil.rmtree(scratch)
        return
    raise DependencyError(f"No source gave {artefact.file_name}. {'; '.join(reasons)}")


def _accept(found: Path, artefact: Artefact, folder: Path, source: Source) -> None:
    """Check, then move into place; a wrong file is deleted with everything it was made of."""
    digest = _digest(found)
    if digest != artefact.sha256:
        shutil.rmtree(found.parent)
        found.parent.mkdir()
        reason = f"its {artefact.file_name} has SHA-256 {digest}, expected {artefact.sha256}"
        if isinstance(source, Folder):
            raise ConfigurationError(f"POPAGENT_MODEL_PATH: {reason}", field="POPAGENT_MODEL_PATH")
        raise SourceRefusedError(reason)
    with found.open("rb") as written:
        os.fsync(written.fileno())
    target = folder / artefact.file_name
    found.replace(target)
    _write_record(target, digest, folder)


def _check_disk(needed: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed + SPARE_DISK_BYTES:
        raise DiskFullError(
            f"The weights need {(needed + SPARE_DISK_BYTES) / 1e9:.1f} GB free in {folder}; {free / 1e9:.1f} are. "
            "Free some, or set POPAGENT_CACHE to another disk.",
            extra={"neededBytes": needed + SPARE_DISK_BYTES, "freeBytes": free},
        )


@contextmanager
def _only_one(folder: Path, progress: Progress) -> Iterator[None]:
    with (folder / ".lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.note("Another pull is running; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _checked(path: Path, artefact: Artefact, folder: Path) -> Record | None:
    if not path.is_file() or path.stat().st_size != artefact.size_bytes:
        return None
    record = _read_record(path, folder)
    if record is None:
        record = _write_record(path, _digest(path), folder)
    if record.sha256 != artefact.sha256:
        log.warning("file with a wrong digest is not used", extra={"path": str(path), "sha256": record.sha256})
        return None
    return record


def _own_record(path: Path, folder: Path) -> Record:
    """Return the record of the user's own model: any digest is accepted, and written down."""
    record = _read_record(path, folder)
    if record is None:
        folder.mkdir(parents=True, exist_ok=True)
        record = _write_record(path, _digest(path), folder)
        log.warning("your own chat model is used, its digest unknown", extra={"path": record.path, "is": record.sha256})
    return record


def _record_file(path: Path, folder: Path) -> Path:
    inside = path.parent == folder
    key = path.name if inside else f"own-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"
    return folder / f".{key}.checked.json"


def _read_record(path: Path, folder: Path) -> Record | None:
    file = _record_file(path, folder)
    if not file.is_file():
        return None
    try:
        record = Record(**json.loads(file.read_bytes()))
    except (MalformedJsonError, TypeError) as error:
        log.warning("record of a digest is unreadable, reading the file again", extra={"reason": str(error)})
        return None
    now = path.stat()
    return record if (record.size_bytes, record.modified_ns) == (now.st_size, now.st_mtime_ns) else None


def _write_record(path: Path, digest: str, folder: Path) -> Record:
    now = path.stat()
    record = Record(str(path), now.st_size, now.st_mtime_ns, digest)
    file = _record_file(path, folder)
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(json.dumps(asdict(record)))
    fresh.replace(file)
    return record


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
