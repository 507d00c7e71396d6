"""The table of operators and the patterns, as JSON."""

from collections.abc import Iterator

from diopigen.model.program import Program
from diopigen.records.codec import part_text, record_text
from diopigen.targets.compiler.patterns import patterns
from diopigen.targets.compiler.view import kernels, table
from diopigen.targets.output import Part, Piece, Render


def outputs(program: Program, render: Render) -> Iterator[Part]:
    """The path is relative to the vendor's output folder; without bindings there is nothing to write."""
    if program.bindings:
        yield Part("compiler/operators.json", program, lambda program: record_text(table(program), sort_keys=True))
        # The order of patterns is that of the file: the first that fits is taken.
        yield Part("compiler/patterns.json", program, lambda program: record_text(patterns(program)))


def pieces(program: Program, render: Render) -> Iterator[Piece]:
    """The kernels of each op, which are in the table where an operator names them."""
    for op in program.ops:
        for key, kernel in kernels(op, program).items():
            text = f'  "{key}": {part_text(kernel, 2, sort_keys=True)}'
            yield Piece(paths="compiler/operators.json", text=text, beside=f'"kernel": "{key}"')
