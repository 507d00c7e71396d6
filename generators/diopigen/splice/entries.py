"""The entries that an edit changed, where nothing follows from the change but what they say in outputs themselves."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from diopigen.diagnostics import Diagnostics
from diopigen.model.op import NOWHERE
from diopigen.model.program import Program
from diopigen.model.vendor import FunctionPlan, Implementation, Origin
from diopigen.passes.cases.plan import plan_cases
from diopigen.passes.contract.bind import entries, said
from diopigen.passes.contract.expand import expand
from diopigen.passes.contract.parts import pieces
from diopigen.passes.contract.verify import RULES
from diopigen.passes.vendor.check_casts import asks_for_truth
from diopigen.splice.last import Last


class Beyond(Exception):
    """More follows from an edit than the entry's own text in outputs, or something is to be reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """One entry before and after: programs of one op, with its functions and cases."""

    before: Program
    after: Program


def edits(last: Last, texts: dict[str, str]) -> Iterator[Edit]:
    """The entries that differ from those of the last run. Raises Beyond."""
    if texts.keys() != last.texts.keys():
        raise Beyond
    for shown, text in texts.items():
        if text != last.texts[shown]:
            yield from _edits(shown, text, last)


def _edits(shown: str, text: str, last: Last) -> Iterator[Edit]:
    old, new = pieces(last.texts[shown]), pieces(text)
    changed = [n for n, (before, after) in enumerate(zip(old, new, strict=False)) if before != after]
    if len(old) != len(new) or 0 in changed or _about(shown, old, new, changed, last):
        raise Beyond
    for number in changed:
        before, after = (_program(piece, shown, last) for piece in (old[number], new[number]))
        if _frame(before) != _frame(after):
            raise Beyond
        yield Edit(before=before, after=after)


def _about(shown: str, old: list[str], new: list[str], changed: list[int], last: Last) -> bool:
    """Whether a finding of the last run is about a changed piece, or about one that now stands elsewhere."""
    spans = [span for d in last.found for span in (d.span, *(span for _, span in d.related)) if span.path == shown]
    lines = [piece.count("\n") for piece in old]
    if lines != [piece.count("\n") for piece in new]:
        return bool(spans)
    begins = [1 + sum(lines[:number]) for number in changed]
    return any(b <= span.line < b + lines[n] for span in spans for n, b in zip(changed, begins, strict=True))


def _program(piece: str, shown: str, last: Last) -> Program:
    """What follows from the entry alone; other entries can only make a finding of these rules needless."""
    found = Diagnostics()
    ops = [read() for _, _, read in entries(piece, shown, PurePosixPath(shown).stem, last.dtypes, found)]
    program = Program(dtypes=last.dtypes, runtime=last.runtime, ops=tuple(op for op in ops if op is not None))
    program = plan_cases(expand(program, found), found)
    broken = (finding for op in program.ops for rule in RULES for finding in rule(op, program.functions, program))
    if len(ops) != 1 or found.found or not all(map(last.explains, broken)):
        raise Beyond
    served = (
        Implementation.of_schema(f.symbol, Origin(last.served[f.symbol]), f.span)
        for f in program.functions
        if f.symbol in last.served
    )
    return replace(
        program, plans=tuple(FunctionPlan(symbol=i.symbol, implementation=i, conversions=()) for i in served)
    )


def _frame(program: Program) -> str:
    """What other entries and files may follow from; a function that nobody serves may be composed by its kernel."""
    truths = [asks_for_truth(p, f, op) for op in program.ops for f in program.functions for p in f.params]
    served = {p.symbol for p in program.plans if p.implementation.origin is not Origin.COMPOSITE}
    open_ = [f.kernel for f in program.functions if f.symbol not in served]
    frames = [replace(op.frame(), digest="", bare_digest="", places=NOWHERE) for op in program.ops]
    return said((frames, truths, open_))
