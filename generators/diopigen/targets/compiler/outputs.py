"""The table of operators and the patterns, as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from diopigen.model.program import Program
from diopigen.targets.compiler.patterns import patterns
from diopigen.targets.compiler.view import table
from diopigen.targets.output import Output, Render


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """The path is relative to the vendor's output folder; without bindings there is nothing to write."""
    if program.bindings:
        operators = json.dumps(asdict(table(program)), indent=1, sort_keys=True)
        yield Output(path="compiler/operators.json", text=f"{operators}\n")
        # The order of patterns is that of the file: the first that fits is taken.
        found = json.dumps(asdict(patterns(program)), indent=1)
        yield Output(path="compiler/patterns.json", text=f"{found}\n")
