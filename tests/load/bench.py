"""Run one benchmark by name: `make bench NAME=first-token` runs first_token.py beside this file."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

NOT_BENCHMARKS = {"bench", "figures"}


def main(name: str) -> None:
    folder = Path(__file__).parent
    known = {file.stem.replace("_", "-"): file for file in folder.glob("*.py") if file.stem not in NOT_BENCHMARKS}
    if name not in known:
        sys.exit(f"there is no benchmark {name!r}; there are: {', '.join(sorted(known))}")
    runpy.run_path(str(known[name]), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
