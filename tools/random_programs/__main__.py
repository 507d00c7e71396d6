"""Runs random programs: `python -m tools.random_programs --count 2000`."""

import argparse
import sys
from multiprocessing import get_context

from tools.random_programs.comparison import reported

_TOGETHER = 12  # programs that are one graph


def main() -> int:
    """The exit code is 1 if a program differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.random_programs", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="programs, a third of each dtype (2000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (1)")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.count, _TOGETHER)
    groups = [(first, min(_TOGETHER, options.first + options.count - first), at) for at, first in enumerate(seeds)]
    compared, wrong = 0, 0
    with get_context("spawn").Pool(options.jobs, maxtasksperchild=20) as pool:
        for found, count in pool.imap_unordered(reported, groups):
            compared += count
            wrong += len(found)
            print("\n".join(found), end="\n" if found else "", flush=True)
    left_out = f"{options.count - compared} left out, on which torch does not agree with itself on the CPU"
    print(f"{compared} programs compared, {left_out}; {wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
