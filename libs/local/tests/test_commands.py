"""The commands as a user types them: findings with their fix, settings with their source, a unit to install."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from popagent_kit import json
from popagent_kit.errors import ConfigurationError
from popagent_kit.remedies import connect_a_model, remedy_for_check
from popagent_kit.settings import command
from popagent_local import doctor
from popagent_local.commands import local
from popagent_local.infrastructure import resolve
from popagent_local.install_service import unit
from popagent_local.programs import LONGEST_STOP_S, SERVICES_STOP, surroundings
from popagent_local.services import (
    LOCAL_SERVICES,
    model_server_program,
    service_programs,
    suite_values,
    tunables,
)
from popagent_local.settings import LocalSettings, require_tls_abroad
from popagent_proto.matrix import SERVICES
from popagent_sandbox import bubblewrap
from popagent_sandbox.confinement import confinement


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("POPAGENT_") or name in {"DATABASE_URL", "OBSERVABILITY_DATABASE_URL", "NATS_URL"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path))
    monkeypatch.setenv("POPAGENT_MODEL_URL", "http://127.0.0.1:9/v1")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(local, arguments, prog_name="popagent")


def findings(result: Result) -> dict[str, dict[str, str | bool]]:
    return {item["name"]: item for item in json.loads(result.output)["items"]}


def test_doctor_finds_nothing_on_a_machine_that_has_all(home: Path) -> None:
    result = run("doctor")

    assert result.exit_code == 0, result.output
    assert re.search(r"postgres +postgres \(PostgreSQL\) 18", result.output)
    assert re.search(r"nats-server +nats-server: v2", result.output)
    assert re.search(r"shell +(confined by \S+bwrap|Commands cannot be confined)", result.output)


def test_doctor_hints_at_commands_that_cannot_be_confined_and_fails_not_for_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "programs", list)
    confinement.cache_clear()
    try:
        result = run("doctor")
    finally:
        confinement.cache_clear()

    assert result.exit_code == 0
    assert "bubblewrap is not installed" in result.output
    assert "docs/sandbox.md" in result.output


@pytest.mark.parametrize(
    ("variable", "value", "check", "fix"),
    [
        ("POPAGENT_PORT", "banana", "settings", "correct the line or the variable"),
        ("POPAGENT_PG_BIN", "/nowhere", "postgres", "make setup"),
        ("POPAGENT_NATS_BIN", "/nowhere/nats-server", "nats-server", "make setup"),
        ("DATABASE_URL", "postgresql://a:hunter2@127.0.0.1:9/x", "postgres", "DATABASE_URL"),
        ("DATABASE_URL", "postgresql://a:hunter2@db.example.org/x", "servers", "correct the variable"),
        ("POPAGENT_SECRET_KEY", "hunter2", "secret key", "from your backup"),
    ],
)
def test_doctor_names_each_trouble_and_its_fix(
    home: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, check: str, fix: str
) -> None:
    monkeypatch.setenv(variable, value)

    as_json, as_text = run("doctor", "--json"), run("doctor")
    found = [item for item in json.loads(as_json.output)["items"] if item["name"] == check and not item["ok"]]

    assert as_json.exit_code == as_text.exit_code == 1
    assert fix in found[0]["fix"]
    assert f"fix: {found[0]['fix']}" in as_text.output
    assert "hunter2" not in as_text.output + as_json.output


@pytest.mark.parametrize(
    ("bound", "check", "fix"),
    [
        ({"MIN_PYTHON": (4, 0)}, "python", "install Python"),
        ({"MIN_DISK_BYTES": 2**60}, "disk", "free 2 GB, or move POPAGENT_HOME"),
        ({"MIN_SHM_BYTES": 2**60}, "shared memory", "--shm-size"),
    ],
)
def test_doctor_says_what_a_machine_has_too_little_of(
    home: Path, monkeypatch: pytest.MonkeyPatch, bound: dict[str, object], check: str, fix: str
) -> None:
    for name, value in bound.items():
        monkeypatch.setattr(doctor, name, value)

    result = run("doctor", "--json")

    assert fix in str(findings(result)[check]["fix"])
    assert (findings(result)[check]["ok"], result.exit_code) == (False, 1)


def test_doctor_hints_at_a_taken_port_and_names_what_a_model_needs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        monkeypatch.setenv("POPAGENT_PORT", str(other.getsockname()[1]))
        taken = run("doctor", "--json")
    monkeypatch.setenv("POPAGENT_MODEL_URL", "")
    monkeypatch.setenv("POPAGENT_CACHE", str(home / "no weights"))
    weightless = run("doctor", "--json")

    assert (findings(taken)["port"]["ok"], findings(taken)["port"]["matters"], taken.exit_code) == (False, False, 0)
    assert (findings(weightless)["model"]["ok"], weightless.exit_code) == (False, 1)
    assert findings(weightless)["model"]["fix"] == connect_a_model()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_doctor_names_a_home_of_somebody_else(home: Path) -> None:
    os.chown(home, 65_534, 65_534)
    try:
        result = run("doctor", "--json")
    finally:
        os.chown(home, 0, 0)

    assert findings(result)["home"]["fix"] == f"chown -R 0 {home}"
    assert result.exit_code == 1


def test_doctor_tells_of_a_search_that_fails_and_fails_not_for_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARXNG_URL", "http://127.0.0.1:9")
    unreachable = run("doctor")
    monkeypatch.setenv("SEARXNG_URL", "http://169.254.169.254")
    wrong = run("doctor")

    assert unreachable.exit_code == 0
    assert "SearXNG at 127.0.0.1:9 is not to be reached" in unreachable.output
    assert "docs/web-search.md" in unreachable.output
    assert wrong.exit_code == 1
    assert "SEARXNG_URL" in wrong.output


def test_doctor_sees_credentials_that_others_can_read(home: Path) -> None:
    (home / "credentials").mkdir(mode=0o755)

    result = run("doctor", "--json")

    assert findings(result)["home"]["fix"] == f"chmod 700 {home}/credentials; chmod 600 {home}/credentials/*"


def test_a_broken_env_file_is_named_with_its_line(home: Path) -> None:
    (home / ".env").write_text("POPAGENT_PORT=9000\nnonsense\n")

    result = run("doctor", "--json")

    assert "line 2" in str(findings(result)["settings"]["detail"])
    assert result.exit_code == 1


def test_config_shows_value_and_source_and_hides_secrets(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPAGENT_API_KEY", "door-key")
    (home / ".env").write_text("POPAGENT_PORT=9000\nDATABASE_URL=postgresql://a:hunter2@127.0.0.1/x\n")

    as_text, as_json = run("config"), run("config", "--json")
    rows = {item["env"]: item for item in json.loads(as_json.output)["items"]}

    assert (rows["POPAGENT_PORT"]["value"], rows["POPAGENT_PORT"]["source"]) == ("9000", "<home>/.env")
    assert (rows["POPAGENT_API_KEY"]["value"], rows["POPAGENT_API_KEY"]["source"]) == (None, "environment")
    assert rows["POPAGENT_HOST"]["source"] == "default"
    assert re.search(r"DATABASE_URL +\(set, hidden\) +<home>/\.env", as_text.output)
    assert not re.search("door-key|hunter2", as_text.output + as_json.output)
    assert "| `POPAGENT_PORT` | `8420` |" in run("config", "--reference").output


def test_a_unit_is_printed_or_written_with_what_to_run_next(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))

    printed = run("install-service", "--user", "--print").output
    written = run("install-service", "--user").output
    path = home / "config" / "systemd" / "user" / "popagent.service"

    assert path.read_text() == printed
    assert f'Environment="POPAGENT_HOME={home}"' in printed
    assert {"KillMode=mixed", "Restart=on-failure"} <= set(printed.splitlines())
    assert f"TimeoutStopSec={LONGEST_STOP_S + 5:.0f}" in printed.splitlines()
    assert all(word in written for word in (str(path), "daemon-reload", "enable --now popagent", "enable-linger"))
    path.write_text("changed by hand")
    assert "popagent.service.bak" in run("install-service", "--user").output


def installed_in(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place.mkdir()
    for name in ("python", "popagent"):
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(place / "python"))
    monkeypatch.setattr("popagent_local.install_service.clone_root", lambda: place)


@pytest.mark.parametrize("folder", ["a b", "100%", "$HOME", "fünf"])
def test_a_unit_names_any_folder_as_systemd_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    place = tmp_path / folder
    installed_in(place, monkeypatch)
    escaped = str(place).replace("%", "%%")

    text = unit(place, system=True).text
    (tmp_path / "popagent.service").write_text(text)

    assert f"WorkingDirectory={escaped}\n" in text
    assert f'Environment="POPAGENT_HOME={escaped}"\n' in text
    assert f'ExecStart="{escaped}/popagent" "up" "--quiet"\n' in text
    if shutil.which("systemd-analyze") is not None:
        command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "popagent.service")]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("folder", ['say "x"', "it's", "back\\slash"])
def test_a_folder_that_systemd_cannot_start_from_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    installed_in(tmp_path / folder, monkeypatch)

    with pytest.raises(ConfigurationError, match=re.escape(folder)):
        unit(tmp_path, system=True)


def test_status_and_logs_and_down_of_a_home_where_nothing_runs(home: Path) -> None:
    status, logs, down = run("status"), run("logs"), run("down")

    assert (status.exit_code, logs.exit_code, down.exit_code) == (1, 1, 0)
    assert f"`{command('up')}`" in status.output
    assert "no logs" in logs.output
    assert json.loads(run("status", "--json").output) == {"running": False}


def test_migrate_without_servers_says_what_to_do(home: Path) -> None:
    result = run("migrate")

    assert result.exit_code == 1
    assert "popagent up" in result.output
    assert "DATABASE_URL" in result.output


def test_bootstrap_prints_what_an_administrator_has_to_run(home: Path) -> None:
    result = run("bootstrap", "--print")

    assert result.exit_code == 0
    assert "create schema if not exists task_runner" in result.output
    assert 'user: "popagent_chat", password: "' in result.output


def test_no_program_inherits_what_it_is_not_given() -> None:
    environ = {
        "PATH": "/bin",
        "AWS_SECRET_ACCESS_KEY": "x",
        "DATABASE_URL": "x",
        "POPAGENT_API_KEY": "x",
        "POPAGENT_CHAT_NATS_URL": "x",
        "POPAGENT_MODEL_URL": "x",
        "POPAGENT_TURN_SLOTS": "3",
        "PYTHONPATH": "/x",
    }

    assert surroundings(environ) | tunables(environ) == {"PATH": "/bin", "POPAGENT_TURN_SLOTS": "3"}


def test_a_service_is_given_the_time_that_its_settings_grant_and_the_door_closes_after_the_services(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPAGENT_TURN_STOP_GRACE_S", "300")
    monkeypatch.setenv("POPAGENT_GATEWAY_DRAIN_S", "60")
    settings = LocalSettings.load()
    infrastructure = resolve(home, settings, lambda name: 1)
    values = suite_values(settings, infrastructure.credentials, boot_id="b", port=1, model_port=1)

    services = {program.name: program for program in service_programs(values, infrastructure, lambda name: 1)}
    model = model_server_program(infrastructure.credentials, 1)
    servers = infrastructure.programs()

    door = services.pop("gateway")
    assert (services["chat"].stop_timeout_s, door.stop_timeout_s) == (315, 75)
    assert {program.stop_order for program in services.values()} == {SERVICES_STOP}
    assert SERVICES_STOP < door.stop_order == model.stop_order < min(server.stop_order for server in servers)
    longest: dict[int, float] = {}
    for program in (*services.values(), door, model, *servers):
        longest[program.stop_order] = max(longest.get(program.stop_order, 0), program.stop_timeout_s)
    assert sum(longest.values()) <= LONGEST_STOP_S
    assert all(program.lives is not None for program in (*services.values(), door))


def test_a_grace_beyond_the_longest_stop_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPAGENT_TURN_STOP_GRACE_S", "301")

    with pytest.raises(ConfigurationError, match="POPAGENT_TURN_STOP_GRACE_S"):
        LocalSettings.load()


def test_the_table_of_local_services_is_the_matrix() -> None:
    assert [row.name for row in LOCAL_SERVICES] == [row.name for row in SERVICES]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u@127.0.0.1/x",
        "postgresql://u@localhost/x",
        "postgresql://u@[::1]:5/x",
        "postgresql://u@db.example.org/x?sslmode=verify-full",
        "tls://nats.example.org:4222",
    ],
)
def test_a_near_or_encrypted_server_is_accepted(url: str) -> None:
    require_tls_abroad("DATABASE_URL", url)


def test_doctor_and_health_give_the_same_advice(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://a:b@127.0.0.1:9/x")

    advice = str(next(row["fix"] for row in json.loads(run("doctor", "--json").output)["items"] if not row["ok"]))

    assert remedy_for_check("postgres").fix == f"{advice[0].upper()}{advice[1:]}."
