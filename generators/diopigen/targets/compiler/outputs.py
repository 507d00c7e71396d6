"""The table of operators and the patterns, as JSON."""

from collections.abc import Iterator

from diopigen.model.program import Program
from diopigen.records.codec import record_text
from diopigen.targets.compiler.patterns import patterns
from diopigen.targets.compiler.view import table
from diopigen.targets.output import Output, Render


def outputs(program: Program, render: Render) -> Iterator[Output]:
    """The path is relative to the vendor's output folder; without bindings there is nothing to write."""
    if program.bindings:
        yield Output(path="compiler/operators.json", text=record_text(table(program), sort_keys=True))
        # The order of patterns is that of the file: the first that fits is taken.
        yield Output(path="compiler/patterns.json", text=record_text(patterns(program)))
