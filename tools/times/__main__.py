"""The command: `python -m tools.times`."""

import argparse
import os
import sys
from pathlib import Path

from benchmarks.figures import facts
from tools.times.kept import keep_builds, keep_tests
from tools.times.records import recorded_builds, recorded_tests
from tools.times.table import text_of_build, text_of_tests

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Prints and keeps what is recorded; the exit code is 1 if nothing is."""
    parser = argparse.ArgumentParser(prog="python -m tools.times", description=__doc__)
    parser.add_argument("--records", type=Path, default=ROOT / "build" / "times", help="what builds and tests recorded")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", help="where figures are kept")
    options = parser.parse_args()
    built, tested = recorded_builds(options.records), recorded_tests(options.records)
    if not built and tested is None:
        print("nothing is recorded yet; run 'make build' or 'make test' first", file=sys.stderr)
        return 1
    known = facts(os.environ.get("CXX", "g++"))
    for name, build in built.items():
        print(text_of_build(name, build))
    if built:
        keep_builds({name: build.last for name, build in built.items()}, known, options.results)
    if tested is not None:
        print(text_of_tests(tested))
        keep_tests(tested.last, known, options.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
