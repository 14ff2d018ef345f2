"""`popagent config`: every setting of every part, its value and where it comes from; secrets are never shown."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Final

from popagent_kit.settings import SettingInfo, Settings
from popagent_proto.matrix import SERVICES

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "The suite": ("popagent_kit.shared_settings", "popagent_local.settings"),
    "The model": ("popagent_models.settings", "popagent_runs.models.settings"),
    "The embedded model": ("popagent_local.model_server.weights", "popagent_local.model_server.settings"),
    "Web search": ("popagent_web.settings",),
    "Streams": ("popagent_bus.settings",),
    "Runs of agents": ("popagent_runs.settings",),
    "Every service": ("popagent_host.settings",),
    **{f"Service {row.name}": (f"{row.package}.settings",) for row in SERVICES},
}
"""Title → the modules whose settings belong there, in the order of the reference."""


def settings_of(name: str) -> Iterator[type[Settings]]:
    """Yield the settings classes that the module `name` defines; nothing when there is no such module."""
    if importlib.util.find_spec(name) is None:
        return
    for value in vars(importlib.import_module(name)).values():
        if isinstance(value, type) and issubclass(value, Settings) and value.__module__ == name:
            yield value


def settings_classes() -> Iterator[type[Settings]]:
    """Yield every settings class of the suite, group by group."""
    for modules in GROUPS.values():
        for name in modules:
            yield from settings_of(name)


def rows() -> list[SettingInfo]:
    """Return one row a variable; what two parts read is listed once."""
    found: dict[str, SettingInfo] = {}
    for settings in settings_classes():
        for row in settings.describe():
            found.setdefault(row.env, row)
    return list(found.values())


def shown(row: SettingInfo) -> str:
    """Return the value as it may be printed."""
    return "(set, hidden)" if row.value is None else row.value or "-"


def render(items: list[SettingInfo]) -> str:
    """Return the listing, strongest sources first as the reader looks for what is set."""
    width = max(len(row.env) for row in items)
    ordered = sorted(items, key=lambda row: row.source == "default")
    return "\n".join(f"{row.env:<{width}}  {shown(row):<28} {row.source}" for row in ordered)
