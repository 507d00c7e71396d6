"""Writes the list of test tiers in CONTRIBUTING.md: `python -m tools.test_tiers`; with --check it only compares."""

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.tiers import FOLDERS, KINDS, TESTS, folder_of
from tools.deep_tests import STEPS
from tools.marked_part import MarkedPart

ROOT = Path(__file__).resolve().parent.parent
PART = MarkedPart(ROOT / "CONTRIBUTING.md", "tiers", "test_tiers")
TIMES = ROOT / "benchmarks" / "results" / "test_times.json"


@dataclass(frozen=True, slots=True)
class Deep:
    """A marker that leaves tests to `make deep-test`."""

    kind: str
    where: str  # e.g. "e2e/test_asan.py: test_cases_are_clean"
    instead: str  # what `make test` has for the same faults


def main() -> int:
    """The exit code is 1 where --check finds another list than it would write."""
    return PART.main(__doc__, listed())


def listed() -> str:
    """The tables of all tiers."""
    seconds = _seconds()
    rows = ["| folder of tests/ | covers | `make quick` | `make test`, s |", "|---|---|---|---|"]
    for name, folder in FOLDERS.items():
        used = f"{seconds[name]:.0f}" if name in seconds else ""
        rows.append(f"| {name} | {folder.covers} | {'yes' if folder.quick else ''} | {used} |")
    rows += ["", "Seconds are those of one process, fixtures included; `make times` keeps them.", ""]
    rows += ["| `make deep-test KIND=` | covers | steps, expected minutes on two cores |", "|---|---|---|"]
    for kind, covers in KINDS.items():
        steps = ", ".join(f"{step.name} {step.minutes:g}" for step in STEPS if step.kind == kind)
        rows.append(f"| {kind} | {covers} | {steps} |")
    rows += [
        "",
        "Tests that are left to it:",
        "",
        "| kind | tests | what `make test` has for the same faults |",
        "|---|---|---|",
    ]
    rows += [f"| {deep.kind} | {deep.where} | {deep.instead} |" for deep in sorted(marked(), key=_order)]
    return "\n".join(rows) + "\n"


def marked() -> Iterator[Deep]:
    """Every marker in the tests' sources."""
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            named = isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name
            where = path.relative_to(TESTS).as_posix() + (f": {named}" if named else "")
            for kind, instead in _markers(node):
                yield Deep(kind, where, instead)


def _markers(node: ast.AST) -> Iterator[tuple[str, str]]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.deep":
            kind, instead = (ast.literal_eval(word) for word in call.args)
            yield kind, instead


def _order(deep: Deep) -> tuple[int, str]:
    return list(KINDS).index(deep.kind), deep.where


def _seconds() -> dict[str, float]:
    """By folder, as the last recorded `make test` took them; empty if none is recorded."""
    found: dict[str, float] = {}
    if TIMES.exists():
        for name, (wall, _) in json.loads(TIMES.read_text(encoding="utf-8"))["files"].items():
            folder = folder_of(ROOT / name)
            found[folder] = found.get(folder, 0.0) + wall
    return found


if __name__ == "__main__":
    sys.exit(main())
