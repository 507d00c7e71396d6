"""Runs deep tests, all that is left out of `make test`: `make deep-test KIND=mutants`.

A kind has steps, each a few commands; the first is its tests in tests/. `--kind today` begins with a step that turns
with the day of the year, and goes on with those after it as long as there is time.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.tiers import KINDS  # noqa: E402  the folder of this file is where Python looks else

PARTS = 30  # of the planted faults, where a day has time for one
_PYTEST = "{python} -m pytest tests --tier deep --kind {kind} -n {jobs} --dist loadfile --max-worker-restart 0 {limit}"
_BUILD = "{python} tools/build.py --vendor droplet --jobs {jobs}"
_BUILT_FOR = {"matrix": ("{python} tools/build.py --vendor torch --build build/torch --jobs {jobs} --no-torch",)}
_CASES = "{python} -m diopi_conformance.cli run --vendor droplet --jobs {jobs}"
_TSAN = "$(g++ -print-file-name=libtsan.so)"
_BOTH_MODES = ("0", "1")
# Without the C++ library in front AddressSanitizer finds nothing that throws. Python keeps memory to its end.
_ASAN = (
    "DIOPI_SANITIZER=address ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 "
    'LD_PRELOAD="$(g++ -print-file-name=libasan.so):$(g++ -print-file-name=libstdc++.so)"'
)
# Memory, streams, forks, copies, calls and compiled programs; tests/torch/sanitized.py lists what they leave out.
_SANITIZED = " ".join(
    f"tests/torch/{folder}test_{name}.py"
    for folder, names in (
        (
            "",
            (
                "memory",
                "streams",
                "copies",
                "tensors",
                "exchange",
                "derived",
                "generators",
                "foreach",
                "attention",
                "distributed",
                "forks",
                "differentiation",
                "promotion",
                "argument_checks",
                "index_checks",
                "reduction_checks",
                "nested",
                "rms_norm",
            ),
        ),
        ("dicp/", ("memory_plan", "library_calls", "replays")),
    )
    for name in names
)


@dataclass(frozen=True, slots=True)
class Step:
    """Commands of the shell, one after another; `more` is what the caller adds to the last."""

    kind: str
    name: str
    minutes: float  # expected on two cores, its builds included; what a day's part takes where it has parts
    commands: tuple[str, ...]

    def lines(self, jobs: int, limit: float | None, more: str) -> Iterator[str]:
        """The commands as they are run; `limit` seconds are left, or None."""
        part = "" if limit is None else f"--part {date.today().timetuple().tm_yday % PARTS + 1}/{PARTS}"
        time_limit = "" if limit is None else f"--limit {limit:.0f}"
        for command in self.commands:
            last = f" {more}" if more and command == self.commands[-1] else ""
            values = {"python": shlex.quote(sys.executable), "kind": self.kind, "jobs": jobs, "root": ROOT}
            yield command.format(**values, limit=time_limit, part=part) + last


_RACES = tuple(
    f"DROPLET_ASYNC={mode} DROPLET_THREADS=4 DROPLET_SHARE_ALL=1 {_CASES} --libraries build/droplet-tsan/lib "
    f'--preload "{_TSAN}" --timeout 300 --out conformance_results/droplet-tsan-{mode}.json'
    for mode in _BOTH_MODES
)
_STRESS = tuple(
    f"DROPLET_ASYNC={mode} DIPU_LIBRARY_DIR={{root}}/build/droplet-tsan/lib "
    f'TSAN_OPTIONS=suppressions={{root}}/tests/torch/tsan.supp LD_PRELOAD="{_TSAN}" '
    "setarch -R {python} benchmarks/stress.py --seconds 20"
    for mode in _BOTH_MODES
)

# Streams, memory, processes that speak with each other, compiled and recorded programs.
_RACED = " ".join(
    f"tests/torch/{name}.py"
    for name in (
        *("test_memory", "test_streams", "test_copies", "test_distributed"),
        *("dicp/test_memory_plan", "dicp/test_library_calls", "dicp/test_replays"),
    )
)
# Python and torch are not instrumented: what they lock and count is not seen.
_PROGRAMS = tuple(
    f"DIOPI_SANITIZER=thread DROPLET_ASYNC={mode} DROPLET_THREADS=4 DIPU_LIBRARY_DIR={{root}}/build/droplet-tsan/lib "
    "TSAN_OPTIONS=suppressions={root}/tests/torch/tsan.supp:ignore_noninstrumented_modules=1:die_after_fork=0 "
    f'LD_PRELOAD="{_TSAN}" setarch -R {{python}} -m pytest {_RACED} --tier test -n {{jobs}} --dist loadfile '
    "--max-worker-restart 0"
    for mode in _BOTH_MODES
)

STEPS = (
    *(Step(kind, "tests", 10, (*_BUILT_FOR.get(kind, ()), _PYTEST)) for kind in KINDS),
    Step(
        "sanitizers",
        "backend",
        40,
        (
            f"{_BUILD} --build build/droplet-asan --sanitize address",
            f"DIPU_LIBRARY_DIR={{root}}/build/droplet-asan/lib {_ASAN} {{python}} -m pytest {_SANITIZED} --tier test "
            "-n {jobs} --dist loadfile --max-worker-restart 0",
        ),
    ),
    Step(
        "races",
        "kernels",
        60,
        (f"{_BUILD} --build build/droplet-tsan --no-torch --sanitize thread", *_RACES),
    ),
    Step("races", "backend", 20, (f"{_BUILD} --build build/droplet-tsan --sanitize thread", *_STRESS)),
    Step("races", "programs", 60, (f"{_BUILD} --build build/droplet-tsan --sanitize thread", *_PROGRAMS)),
    Step(
        "matrix",
        "teams",
        12,
        (
            f"{_BUILD} --build build/droplet-teams --no-torch "
            "--define DROPLET_LAUNCHER={root}/tests/cpp/kernels/droplet_teams.h",
            f"{_CASES} --libraries build/droplet-teams/lib --out conformance_results/droplet-teams.json",
        ),
    ),
    Step("matrix", "versions", 8, ("{python} -m tools.admitted_versions -- -n {jobs} --dist loadfile",)),
    Step(
        "fuzz",
        "programs",
        20,
        (
            f"{_BUILD} --build build/droplet",
            "DIPU_LIBRARY_DIR={root}/build/droplet/lib nice {python} -m tools.random_programs --jobs {jobs}",
        ),
    ),
    Step(
        "fuzz",
        "kills",
        25,
        (f"{_BUILD} --build build/droplet", "nice {python} -m tests.property.kills --count 300"),
    ),
    Step("fuzz", "passing", 150, ("nice {python} -m tests.property.passing_files --jobs {jobs}",)),
    Step("fuzz", "files", 62, ("nice {python} -m tests.property.odd_files --seconds 3600",)),
    Step(
        "mutants",
        "kernels",
        15,
        (f"{_BUILD} --build build/droplet", "nice {python} -m tools.mutants --jobs {jobs} {part}"),
    ),
    Step("mutants", "null_libraries", 10, (f"{_BUILD} --build build/droplet", "nice {python} -m tools.null_library")),
    Step(
        "mutants",
        "operators",
        30,
        (
            f"{_BUILD} --build build/droplet",
            "DIPU_LIBRARY_DIR={root}/build/droplet/lib nice {python} -m tools.op_faults --jobs {jobs}",
        ),
    ),
    Step(
        "frameworks",
        "models",
        15,
        (
            f"{_BUILD} --build build/droplet",
            "DIPU_LIBRARY_DIR={root}/build/droplet/lib {python} -m tools.hf_models --jobs {jobs}",
        ),
    ),
)


def main() -> int:
    """The exit code is 1 if a step fails, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="make deep-test",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="steps, with the minutes that they are expected to take on two cores:\n" + "\n".join(_listed()),
    )
    parser.add_argument("--kind", choices=(*KINDS, "today", "all"), default="all", help="which (all)")
    parser.add_argument("--step", help="only the steps of this name")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="begin no step that would end later")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("more", nargs="*", help="after --: options for the last command of each step")
    options = parser.parse_args()
    steps = _chosen(options.kind, options.step)
    if not steps:
        parser.error(f"no step is called '{options.step}'; steps: {', '.join(sorted({s.name for s in STEPS}))}")
    return _run(steps, options)


def _chosen(kind: str, name: str | None) -> tuple[Step, ...]:
    steps = tuple(step for step in STEPS if kind in (step.kind, "today", "all") and name in (None, step.name))
    if kind != "today" or not steps:
        return steps
    first = date.today().timetuple().tm_yday % len(steps)
    return steps[first:] + steps[:first]


def _run(steps: Sequence[Step], options: argparse.Namespace) -> int:
    begun, failed, left_out = time.monotonic(), [], []
    for step in steps:
        limit = None if options.limit is None else options.limit - (time.monotonic() - begun)
        if limit is not None and step.minutes * 60 > limit:
            left_out.append(step)
            continue
        print(f"== {step.kind}: {step.name}, about {step.minutes:g} min on two cores", flush=True)
        if not _passes(step.lines(options.jobs, limit, shlex.join(options.more))):
            failed.append(step)
    for title, found in (("left out for want of time", left_out), ("FAILED", failed)):
        if found:
            print(f"{title}: {', '.join(f'{step.kind} {step.name}' for step in found)}")
    return 1 if failed else 0


def _passes(lines: Iterator[str]) -> bool:
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "DIOPI_REQUIRE_BUILD": "1"}
    for line in lines:
        status = subprocess.run(["bash", "-c", line], cwd=ROOT, env=environment, check=False).returncode
        has_no_test = status == 5 and "-m pytest" in line  # of the kind
        if status != 0 and not has_no_test:
            print(f"exit code {status}: {line}", flush=True)
            return False
    return True


def _listed() -> Iterator[str]:
    for kind, covers in KINDS.items():
        yield f"  {kind}: {covers}"
        yield from (f"    {step.name:10} {step.minutes:4g}" for step in STEPS if step.kind == kind)


if __name__ == "__main__":
    sys.exit(main())
