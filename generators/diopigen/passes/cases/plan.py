"""Fills `program.cases`: every function gets its op's rows, crossed with the axes that the schema lets vary.

Not the full product: every row runs once with the usual values, and every pair of values that may meet meets once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import accumulate
from types import MappingProxyType

from diopigen.diagnostics import Diagnostics
from diopigen.model.case import Axes, Case
from diopigen.model.op import CaseRow, Form, Function, Op
from diopigen.model.program import Program
from diopigen.passes.cases.axes import choices, space
from diopigen.passes.cases.dtypes import tensor_dtypes, with_numbers
from diopigen.passes.cases.limits import Choice
from diopigen.passes.cases.pairwise import combinations
from diopigen.passes.cases.rows import sound_rows
from diopigen.vocabulary.dtype import DType, DTypes


def plan_cases(program: Program, diagnostics: Diagnostics, known: Mapping[str, str] = MappingProxyType({})) -> Program:
    """Give every function its cases; unsound rows are reported, functions without a case too.

    Those in `known`, by symbol, are planned already, of sound rows alone: empty where there are none.
    """
    forms = {op.name: program.forms(op.name) for op in program.ops}
    planned = {name for name, functions in forms.items() if functions and all(known.get(f.symbol) for f in functions)}
    rows = {op.name: op.cases if op.name in planned else sound_rows(op, diagnostics) for op in program.ops}
    cases: list[Case] = []
    for function in program.functions:
        op = program.op(function.op)
        if op is None:
            continue
        kept = known.get(function.symbol)
        found = () if kept is not None else tuple(_function_cases(op, function, rows[op.name], program.dtypes))
        if not found and not kept and len(rows[op.name]) == len(op.cases):
            message = f"'{op.name}' has no case that '{function.symbol}' can run"
            # Not every operator has a reference to be compared with, so this may be fine.
            diagnostics.note("no-case", message, function.span, "add a row under 'cases:'")
        cases.extend(found)
    return replace(program, cases=tuple(cases))


def _function_cases(op: Op, function: Function, rows: tuple[CaseRow, ...], dtypes: DTypes) -> Iterator[Case]:
    chosen = choices(op, function, rows)
    if not chosen.numbers or not all(p.usual_in_c for p in function.params):
        return
    words = tuple(chosen.changes)
    axes = (words, chosen.elements, chosen.layouts, chosen.views, chosen.fills)
    starts = tuple(accumulate(map(len, axes[:-1]), initial=0))

    @cache
    def part(word: str, number: int, element: int) -> Case:
        """The case with usual axes: what it has in common with all of its row, change and element types."""
        return _usual(op, function, chosen.changes[word][number], chosen.elements[element], dtypes)

    for combination in combinations(space(op, function, chosen, dtypes)):
        places = (value - start for value, start in zip(combination.values, starts, strict=True))
        change, element, layout, view, fill = places
        word = words[change]
        unusual = Axes(layout=chosen.layouts[layout], view=chosen.views[view], fill=chosen.fills[fill], change=word)
        common = part(word, combination.row, element)
        number = str(chosen.numbers[combination.row])
        yield replace(common, id="/".join((common.id, *unusual.words, number)), axes=unusual)


def _usual(op: Op, function: Function, row: CaseRow, choice: Choice, dtypes: DTypes) -> Case:
    elements = tuple(choice.items())
    environment = with_numbers(op, row, choice)
    return Case(
        id=f"{function.word}/{_elements_word(elements)}",
        symbol=function.symbol,
        elements=elements,
        dtypes=tensor_dtypes(function.params, environment, dtypes),
        forward=tensor_dtypes((*op.outs, *op.args), environment, dtypes) if function.form is Form.BACKWARD else (),
        values=tuple((name, value) for name, value in row.values if value is not None),
        data=row.data,
        axes=Axes(),
        span=row.span,
    )


def _elements_word(elements: tuple[tuple[str, DType], ...]) -> str:
    """e.g. "f32" where all agree, "f32-i64" where they differ, "fixed" where there is nothing to choose."""
    names = [dtype.name for _, dtype in elements]
    return names[0] if len(set(names)) == 1 else "-".join(names) or "fixed"
