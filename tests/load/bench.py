"""Run one benchmark by name: `make bench NAME=first-token` runs first_token.py beside this file."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
NOT_BENCHMARKS = {"beside", "bench", "browsing", "figures", "lean", "usage"}


def main(arguments: list[str]) -> None:
    """Run the benchmark that the first argument names; the others are its own."""
    name, *rest = arguments or [""]
    files = (file for file in FOLDER.glob("*.py") if not file.stem.startswith("test_"))
    known = {file.stem.replace("_", "-"): file for file in files if file.stem not in NOT_BENCHMARKS}
    if name not in known:
        sys.exit(f"there is no benchmark {name!r}; there are: {', '.join(sorted(known))}")
    sys.path.insert(0, str(FOLDER.parent.parent))  # so that they find tests.suite
    sys.argv = [name, *rest]
    runpy.run_path(str(known[name]), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
