"""`python -m popagent_proto.export` writes the files; `--check` compares and exits 1 where one differs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from popagent_kit.settings import clone_root
from popagent_proto.export import asyncapi, examples, typescript
from popagent_proto.export.registry import http_shapes, messages, replies

VERSION = "1"


def text_of(value: object) -> str:
    """Return JSON as it is committed."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def files(root: Path) -> dict[Path, str]:
    """Return every generated file with its content; golden examples are only added where none is."""
    shapes: list[type[BaseModel]] = [*messages(), *replies(), *http_shapes()]
    _, schema = models_json_schema([(shape, "validation") for shape in shapes], ref_template="#/$defs/{model}")
    found = {
        root / "proto" / "schema" / "popagent.json": text_of(schema),
        root / "proto" / "asyncapi.json": text_of(asyncapi.document(VERSION)),
        root / "services" / "gateway" / "ui" / "src" / "contracts.ts": typescript.document(),
    }
    for name, shape in examples.shapes().items():
        path = root / "proto" / "examples" / f"{name}.json"
        found[path] = path.read_text() if path.exists() else text_of(examples.example_of(shape))
    return found


def main() -> int:
    """Write, or with `--check` compare."""
    parser = argparse.ArgumentParser(prog="python -m popagent_proto.export", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where a file differs")
    check = parser.parse_args().check
    root = clone_root()
    if root is None:
        sys.stderr.write("The contracts are exported from a clone.\n")
        return 2
    stale = []
    for path, content in files(root).items():
        if path.exists() and path.read_text() == content:
            continue
        stale.append(str(path.relative_to(root)))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
    for path_text in stale:
        sys.stdout.write(f"{'differs' if check else 'written'}: {path_text}\n")
    if check and stale:
        sys.stdout.write("Run `make contracts` and commit what it writes.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
