"""`python -m popagent_gateway.export_openapi [--check]`: writes proto/openapi.json, or tells whether it is current."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson

from popagent_gateway.api import described
from popagent_kit.settings import clone_root


def rendered() -> bytes:
    """Return the document as it is committed."""
    return orjson.dumps(described(), option=orjson.OPT_INDENT_2) + b"\n"


def main(arguments: list[str], target: Path | None = None) -> int:
    """Return 0, or 1 when `--check` found a difference."""
    root = clone_root()
    if target is None and root is None:
        sys.stderr.write("This works in a clone only.\n")
        return 1
    path = target or (root or Path()) / "proto" / "openapi.json"
    document = rendered()
    if "--check" in arguments:
        if path.is_file() and path.read_bytes() == document:
            return 0
        sys.stderr.write(f"{path.name} is not what the routes say; run python -m popagent_gateway.export_openapi\n")
        return 1
    path.write_bytes(document)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
