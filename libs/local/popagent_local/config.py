"""`popagent config`: every setting of every part, its value and where it comes from; secrets are never shown."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator

from popagent_kit.settings import SettingInfo, Settings
from popagent_proto.matrix import SERVICES

MODULES = (
    "popagent_local.settings",
    "popagent_bus.settings",
    "popagent_models.settings",
    "popagent_local.model_server.weights",
    "popagent_local.model_server.settings",
    *(f"{row.package}.settings" for row in SERVICES),
)


def settings_classes() -> Iterator[type[Settings]]:
    """Yield every settings class of the suite, in the order of MODULES."""
    for name in MODULES:
        if importlib.util.find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Settings) and value.__module__ == name:
                yield value


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


def reference() -> str:
    """Return the configuration reference as Markdown."""
    lines = ["| Variable | Default | Meaning |", "|---|---|---|"]
    for row in sorted(rows(), key=lambda row: row.env):
        default = f"`{row.default}`" if row.default else ""
        lines.append(f"| `{row.env}` | {default} | {row.description.replace('|', '&#124;')} |")
    return "\n".join(lines) + "\n"
