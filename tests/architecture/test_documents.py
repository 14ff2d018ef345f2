"""What the documents name exists: files, links, tables, variables, commands, metrics."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_cli.catalogue import COMMANDS
from popagent_kit.settings import clone_root
from popagent_local import config
from popagent_proto import matrix
from popagent_proto.base import Message
from popagent_proto.matrix import SERVICES, ServiceRow

ROOT = clone_root() or Path()
SKIPPED = {".venv", ".popagent", "node_modules", "workspace", "dist", "build"}
DOCUMENTS = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not SKIPPED & set(path.relative_to(ROOT).parts) and not path.parent.name.startswith(".")
)
CODE_SUFFIXES = (".py", ".sql", ".json", ".toml", ".yml", ".ts")
# Where a path in a document may begin, beside the document's own folder and the root.
PLACES = (
    *(f"services/{row.name}/{row.package}" for row in SERVICES),
    *(str(path.relative_to(ROOT)) for path in (ROOT / "libs").glob("*/popagent_*")),
    *(str(path.relative_to(ROOT)) for path in (ROOT / "libs").glob("*")),
    "libs/tools",
    "services/chat/popagent_chat/turns",
    "services/gateway/popagent_gateway/streams",
    "proto",
)
TESTS_ONLY = re.compile(r"POPAGENT_TEST_|POPAGENT_…")


def found_in(pattern: str) -> Iterator[tuple[Path, str]]:
    for path in DOCUMENTS:
        for text in re.findall(pattern, path.read_text(encoding="utf-8")):
            yield path.relative_to(ROOT), text


def exists(document: Path, name: str) -> bool:
    places = (ROOT / document.parent, ROOT, *(ROOT / place for place in PLACES))
    return any((place / name).exists() for place in places)


def test_every_link_leads_somewhere() -> None:
    links = [(path, target.split("#")[0]) for path, target in found_in(r"\]\(([^)\s]+)\)") if "://" not in target]

    assert [(str(path), target) for path, target in links if not (ROOT / path.parent / target).exists()] == []


def test_every_file_that_is_named_is_there() -> None:
    names = [
        (path, name) for path, name in found_in(r"`([\w./_-]+)`") if name.endswith(CODE_SUFFIXES) and "…" not in name
    ]
    examples = {"docker-compose.override.yml", "state.json"}

    assert [(str(path), name) for path, name in names if name not in examples and not exists(path, name)] == []


def test_every_variable_that_is_named_is_a_setting() -> None:
    known = {row.env for row in config.rows()} | {"POSTGRES_PASSWORD"}
    known |= {env.replace("POPAGENT_<SERVICE>", row.env_prefix) for env in known for row in SERVICES}
    named = set(found_in(r"\b(POPAGENT_(?:<SERVICE>)?[A-Z_]+|(?:OBSERVABILITY_)?DATABASE_URL|NATS_URL)\b"))

    # A name that ends in an underscore stands for a family.
    wrong = {(str(path), name) for path, name in named if name not in known and not name.endswith("_")}

    assert {(path, name) for path, name in wrong if not TESTS_ONLY.match(name)} == set()


def test_every_command_that_is_named_exists() -> None:
    named = [(str(path), name) for path, name in found_in(r"(?:`|\./)popagent ([a-z][a-z-]*)")]

    assert [(path, name) for path, name in named if name not in COMMANDS] == []


def test_every_metric_that_is_named_is_recorded() -> None:
    code = "".join(
        path.read_text(encoding="utf-8") for top in ("libs", "services") for path in (ROOT / top).rglob("*.py")
    )
    packages = {row.package for row in SERVICES} | {path.name for path in (ROOT / "libs").glob("*/popagent_*")}
    named = {(str(path), name) for path, name in found_in(r"`(popagent_[a-z_]+_(?:total|seconds|streams|ready))`")}

    assert {(path, name) for path, name in named if f'"{name}"' not in code and name not in packages} == set()


@pytest.mark.parametrize("service", [row.name for row in SERVICES])
def test_the_owner_table_names_every_table_of_the_service(service: str) -> None:
    statements = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "migrations" / service).glob("*.sql"))
    tables = set(re.findall(r"^create table (?:if not exists )?(\w+)", statements, re.M))
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    [row] = re.findall(rf"^\| {service} \|[^|]*\|([^|]*)\|", architecture, re.M)

    assert set(re.findall(r"`(\w+)`", row)) == tables


@pytest.mark.parametrize("service", SERVICES, ids=lambda row: row.name)
def test_the_owner_table_says_whom_a_service_asks_and_hears(service: ServiceRow) -> None:
    architecture = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    [(asks, hears)] = re.findall(rf"^\| {service.name} \|[^|]*\|[^|]*\|([^|]*)\|([^|]*)\|$", architecture, re.M)
    others = {row.name for row in SERVICES} - {service.name}

    told_asks = others if asks.strip() == "every service" else {name for name in others if name in asks}
    told_hears = others if hears.strip().startswith("all events") else {name for name in others if name in hears}
    assert told_asks == set(service.asks)
    assert told_hears == (others if service.watches else set(service.hears))


def test_the_picture_of_the_layers_names_each_of_them_from_top_to_bottom() -> None:
    rules = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    services = {row.package for row in SERVICES}
    layers = [{name.strip() for name in layer.split("|")} for layer in rules[0]["layers"]]
    _, _, section = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Layers")
    lines = [re.findall(r"(?:^| {4,})([a-z]+) {3,}\S", line) for line in section.split("```")[1].splitlines()]
    drawn = [{f"popagent_{name}" for name in names} for names in lines if names]

    assert drawn == [{"popagent_services"} if layer == services else layer for layer in layers]


@pytest.mark.parametrize("service", SERVICES, ids=lambda row: row.name)
def test_the_page_of_a_service_names_files_of_its_own_or_of_a_library_that_it_leads_to(service: ServiceRow) -> None:
    page = Path("services") / service.name / "README.md"
    libraries = re.findall(r"`(libs/[\w/]+/)`", (ROOT / page).read_text(encoding="utf-8"))
    folders = [ROOT / place for place in (page.parent / service.package, *libraries)]
    named = {name for path, name in found_in(r"`([\w./_-]+\.py)`") if path == page}
    links = {name for name in named if (ROOT / page.parent / name).exists() or (ROOT / name).exists()}

    assert {name for name in named - links if not any(any(each.rglob(name)) for each in folders)} == set()


@pytest.mark.parametrize("service", [row.name for row in SERVICES])
def test_every_service_has_a_page(service: str) -> None:
    assert (ROOT / "services" / service / "README.md").is_file()


def test_every_subject_that_is_named_is_one_of_the_contracts() -> None:
    frames = {matrix.live_subject(row.name, slice_, "<id>") for row in SERVICES for slice_ in ("turns", "tasks")}
    wakes = {matrix.wake_subject(row.name, slice_) for row in SERVICES for slice_ in ("turns", "tasks", "schedules")}
    known = set(Message.registry) | wakes | {re.sub(r"<\w+>$", "<id>", subject) for subject in frames}
    named = [
        (path, subject)
        for path, subject in found_in(r"`(popagent\.[a-z-]+\.(?:cmd|qry|evt|live|wake|telemetry)\.[^`*>]+>?)`")
        if not subject.startswith("popagent.<")
    ]

    unknown = [(str(path), subject) for path, subject in named if re.sub(r"<\w+>$", "<id>", subject) not in known]

    assert unknown == []
