"""Settings: environment > `.env` of the clone > `.env` of the home > default; each value remembers its source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from popagent_kit.errors import ConfigurationError

DEFAULT: Final = "default"
STARTED_BY_UP: Final = "POPAGENT_BOOT_ID"


def setting(env: str, default: Any = ..., *, description: str, secret: bool = False, **bounds: Any) -> Any:
    """Declare a setting read from the variable `env`; `bounds` are pydantic's (gt, le, pattern and so on)."""
    return Field(default, description=description, json_schema_extra={"env": env, "secret": secret}, **bounds)


def clone_root() -> Path | None:
    """Return the root of the clone this code runs from, or None when it is installed from a wheel."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "pyproject.toml").is_file() and (folder / "libs" / "kit").is_dir():
            return folder
    return None


def command(line: str) -> str:
    """Return a command of ours as it is typed in the current folder, for a message."""
    root = clone_root()
    return f"./popagent {line}" if root is not None and os.path.realpath(os.curdir) == str(root) else f"popagent {line}"


def home_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return POPAGENT_HOME, else `.popagent` in the clone, else the XDG data folder."""
    env = os.environ if environ is None else environ
    root = clone_root()
    given = env.get("POPAGENT_HOME") or (read_env_file(root / ".env").get("POPAGENT_HOME") if root else None)
    if given:
        return Path(given).expanduser().absolute()
    if root is not None:
        return root / ".popagent"
    return Path(env.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "popagent"


def default_workspace_root(environ: Mapping[str, str] | None = None) -> Path:
    """Return `workspace/` beside the clone's own home, else below the home."""
    root, home = clone_root(), home_folder(environ)
    return root / "workspace" if root is not None and home == root / ".popagent" else home / "workspace"


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return POPAGENT_CACHE, else the XDG cache folder; model weights lie there, shared by every home."""
    env = os.environ if environ is None else environ
    given = env.get("POPAGENT_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    return Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "popagent"


def read_env_file(path: Path) -> dict[str, str]:
    """Return the `NAME=value` lines of `path`; blank lines, comments and quotes around values are dropped."""
    if not path.is_file():
        return {}
    values: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip().removeprefix("export ")
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigurationError(f"{path.name}, line {number}: expected NAME=value")
        values[name.strip()] = value.strip().strip("'\"")
    return values


@dataclass(frozen=True)
class Layer:
    """One source of values: `flag`, `environment`, or a file."""

    source: str
    values: Mapping[str, str]


def layers(flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> list[Layer]:
    """Return the sources, strongest first.

    A service that `popagent up` started has its environment alone: it was given what it may know.
    """
    env = os.environ if environ is None else environ
    found = [Layer("flag", flags or {}), Layer("environment", env)]
    if env.get(STARTED_BY_UP):
        return found
    root = clone_root()
    if root is not None:
        found.append(Layer("./.env", read_env_file(root / ".env")))
    home = home_folder(env)
    found.append(Layer("<home>/.env", read_env_file(home / ".env")))
    return found


@dataclass(frozen=True)
class SettingInfo:
    """One row of the configuration reference; `value` is None when it is a secret that is set."""

    env: str
    description: str
    default: str
    value: str | None
    source: str
    secret: bool


class Settings(BaseModel):
    """Base of every settings class: read once at start, then frozen."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sources: ClassVar[dict[str, str]] = {}

    @classmethod
    def load(cls, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None) -> Self:
        """Read the settings.

        Raises:
            ConfigurationError: A value is missing or out of bounds; the message names the variable.
        """
        found = layers(flags, environ)
        values: dict[str, Any] = {}
        for name, env, _ in cls.declared():
            for layer in found:
                if layer.values.get(env, "") != "":
                    values[name] = layer.values[env]
                    break
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            if not first["loc"]:  # a rule about several settings at once; its message names them
                raise ConfigurationError(first["msg"].removeprefix("Value error, ")) from error
            env = {name: env for name, env, _ in cls.declared()}.get(str(first["loc"][0]), str(first["loc"][0]))
            raise ConfigurationError(f"{env}: {first['msg']}", field=env) from error

    @classmethod
    def declared(cls) -> Iterator[tuple[str, str, bool]]:
        """Yield (field name, environment variable, is secret)."""
        for name, field in cls.model_fields.items():
            extra = field.json_schema_extra
            if isinstance(extra, dict) and "env" in extra:
                yield name, str(extra["env"]), bool(extra["secret"])

    @classmethod
    def describe(
        cls, flags: Mapping[str, str] | None = None, environ: Mapping[str, str] | None = None
    ) -> list[SettingInfo]:
        """Return every setting with its value and source, secrets masked."""
        found = layers(flags, environ)
        rows = []
        for name, env, secret in cls.declared():
            field = cls.model_fields[name]
            default = "" if field.is_required() or field.default is None else str(field.default)
            value, source = default, DEFAULT
            for layer in found:
                if layer.values.get(env, "") != "":
                    value, source = layer.values[env], layer.source
                    break
            shown = None if secret and value else value
            rows.append(SettingInfo(env, field.description or "", default, shown, source, secret))
        return rows


def reveal(value: SecretStr | None) -> str | None:
    """Return the text of a secret setting, or None."""
    return None if value is None else value.get_secret_value()
