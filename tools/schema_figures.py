"""Prints what the schemas come to: ops, functions and topics, and how many lines of YAML an operator takes.

An operator is one function of the contract; the functions that one entry declares share its lines evenly. Blank lines
and lines that are only a comment do not count. Rows of cases are told apart: they say no fact, they ask for tests.
"""

import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.project import Project

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Lines of each entry, and of each function, in the order of the schemas."""

    topics: int  # e.g. 48: files of schemas/ops
    entries: tuple[int, ...]  # e.g. (15, 22, ...)
    operators: tuple[float, ...]  # e.g. (15.0, 5.5, 5.5, 5.5, 5.5, ...)
    facts: tuple[float, ...]  # e.g. (11.0, 4.0, ...): of each function, without the rows under `cases:`


def figures(program: Program, folder: Path) -> Figures:
    """Counts the lines of the program's ops in the files of `folder`."""
    lines = dict(_lines(program, folder))
    rows = {op.name: len({row.span.line for row in op.cases}) for op in program.ops}
    functions = Counter(function.op for function in program.functions)
    return Figures(
        topics=len({op.topic for op in program.ops}),
        entries=tuple(lines[op.name] for op in program.ops),
        operators=tuple(lines[function.op] / functions[function.op] for function in program.functions),
        facts=tuple((lines[f.op] - rows[f.op]) / functions[f.op] for f in program.functions),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that at least `share` of all do not exceed."""
    ranked = sorted(values)
    return next(value for rank, value in enumerate(ranked, 1) if rank >= share * len(ranked))


def _lines(program: Program, folder: Path) -> Iterator[tuple[str, int]]:
    for topic in dict.fromkeys(op.topic for op in program.ops):
        text = (folder / f"{topic}.yaml").read_text(encoding="utf-8").splitlines()
        starts = [(op.name, op.span.line - 1) for op in program.ops if op.topic == topic]
        for (name, start), (_, end) in pairwise([*starts, ("", len(text))]):
            yield name, sum(1 for line in text[start:end] if line.strip() and not line.lstrip().startswith("#"))


def main() -> int:
    """Exits with 1 if the schemas have an error."""
    project = Project(root=ROOT)
    program = pipeline.run(project, Diagnostics())
    if program is None or not program.functions:
        print("the schemas have errors; diopigen lint shows them", file=sys.stderr)
        return 1
    found = figures(program, project.schemas / "ops")
    print(f"{len(found.entries)} ops, {len(found.operators)} functions, {found.topics} topics")
    kinds = (("function", found.operators), ("function without rows of cases", found.facts), ("op", found.entries))
    for what, values in kinds:
        print(f"lines per {what}: median {statistics.median(values):g}, 95th percentile {percentile(values, 0.95):g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
