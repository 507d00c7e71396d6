"""Builds and tests with each supported release of torch, one after the other, each in an environment of its own.

    make matrix                           all releases of constraints/
    make matrix RELEASES='2.13 2.15'      some of them
    make matrix RELEASES=2.15 GOAL=build  another target of the Makefile than `test`

The environments are kept in build/matrix, and builds as ever: what does not depend on torch is built once. Each
release needs up to 6 GB, since torch's default wheels bring CUDA along.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "matrix"
RELEASES = tuple(sorted(path.stem.removeprefix("torch-") for path in (ROOT / "constraints").glob("torch-*.txt")))
# pytest's last line, e.g. "3 failed, 8000 passed, 60 skipped in 1320.10s (0:22:00)".
_CLOSING = re.compile(r"^=* ?((?:\d+ [a-z]+,? ?)+) in [\d.]+s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One release."""

    release: str  # e.g. "2.15"
    status: int  # of make
    seconds: float
    said: str  # what pytest ended with, or the last line of the log
    log: Path


def run(release: str, goal: str, make: Sequence[str]) -> Run:
    """Raises KeyboardInterrupt, when make has ended."""
    log = FOLDER / f"{release}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    command = [*make, goal, f"VENV=build/matrix/torch-{release}", f"TORCH={release}"]
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, check=False)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    closing = [match[1] for line in lines if (match := _CLOSING.match(line))]
    said = closing[-1] if closing else (lines or [""])[-1]
    return Run(release=release, status=done.returncode, seconds=time.monotonic() - start, said=said, log=log)


def main() -> int:
    """The exit code is 1 if a release failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "releases", nargs="*", metavar="RELEASE", help=f"of {', '.join(RELEASES)}; all if none is named"
    )
    parser.add_argument("--goal", default="test", help="a target of the Makefile (test)")
    parser.add_argument("--make", nargs="+", default=["make"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [release for release in options.releases if release not in RELEASES]
    if unknown:
        parser.error(f"there are no constraints for torch {unknown[0]}; choose of {', '.join(RELEASES)}")
    failed = False
    try:
        for number, release in enumerate(chosen := options.releases or RELEASES, start=1):
            print(f"{number}/{len(chosen)} torch {release}: {FOLDER.relative_to(ROOT)}/{release}.log", flush=True)
            done = run(release, options.goal, options.make)
            failed = failed or done.status != 0
            word = "passed" if done.status == 0 else f"FAILED ({done.status})"
            print(f"    {word} in {done.seconds / 60:.1f} min: {done.said}", flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
