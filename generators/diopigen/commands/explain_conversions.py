"""What the adaptor does to each tensor of a function, why, and the line of convert_config.yaml that decided."""

from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.diagnostics import Span
from diopigen.model.op import Function, Role
from diopigen.model.program import Program
from diopigen.model.vendor import Casts, Contiguous, FunctionPlan, Layouts, Origin, Said
from diopigen.passes.vendor.resolve_conversions import PRIMITIVES, Decision, Resolver, applicable
from diopigen.vocabulary.layouts import ANY, of_rank, own_ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str  # e.g. "weight"; empty below the first line of a tensor
    role: str  # e.g. "in"
    what: str  # e.g. "float64 -> float32"
    span: Span | None  # of the rule


def conversion_lines(program: Program, function: Function, plan: FunctionPlan) -> Iterator[str]:
    """Two tables: before the call and after a success, each in the order in which things happen."""
    assert program.vendor is not None
    if function.symbol in PRIMITIVES:
        yield "  nothing is converted: conversions are made of it, so it takes every tensor as it is"
        return
    if plan.implementation.origin is Origin.COMPOSITE:
        yield "  nothing is converted: the functions that it is composed of convert for themselves"
        return
    resolver = Resolver(vendor=program.vendor, dtypes=program.dtypes)
    decisions = tuple(resolver.decisions(function, plan.implementation))
    if not any(decision.casts or decision.layouts or decision.contiguous for decision in decisions):
        yield "  nothing is converted: no rule speaks of its tensors"
        return
    yield "  before the call:"
    yield from table([row for decision in decisions for row in _rows(decision)])
    after = [row for decision in decisions if plan.conversion(decision.param.name) for row in _afterwards(decision)]
    if after:
        yield "  after a success:"
        yield from table(after)


def _rows(decision: Decision) -> Iterator[Row]:
    """What happens to one tensor and why, then what was overridden."""
    name, role = decision.param.name, decision.param.role.value
    levels: tuple[tuple[Said, ...], ...] = (decision.casts, decision.layouts, decision.contiguous)
    if not any(levels):
        yield Row(name=name, role=role, what="as it is: no rule speaks of it", span=None)
    for said in levels:
        for position, item in enumerate(said):
            lines = _deciding(item, decision) if position == 0 else [(f"  instead of {_spelled(item)}", item.span)]
            for what, span in lines:
                yield Row(name=name, role=role, what=what, span=span)
                name, role = "", ""


def _deciding(said: Said, decision: Decision) -> Iterator[tuple[str, Span]]:
    """What the deciding rule comes to, or why it comes to nothing."""
    allocated = decision.param.role is Role.CALLEE_OUT
    match said:
        case Casts():
            acting = applicable(said, decision.taken)
            yield from ((f"{cast.source.word} -> {cast.target.word}", cast.span) for cast in acting)
            if not said.casts:
                yield "any dtype", said.span
            elif not acting:
                yield f"any dtype: it is never {' or '.join(cast.source.word for cast in said.casts)}", said.span
        case Layouts() if allocated:
            yield "any order: the function allocates it", said.span
        case Layouts():
            yield from ((line, said.span) for line in _orders(said.names))
        case Contiguous() if allocated:
            yield "any strides: the function allocates it", said.span
        case Contiguous():
            yield ("contiguous where no order is asked for" if said.wanted else "any strides"), said.span


def _orders(names: tuple[str, ...]) -> Iterator[str]:
    """What `names` ask of a tensor of each rank."""
    ranks = own_ranks(names)
    for rank in ranks:
        first, *others = of_rank(names, rank)
        kept = f", {' or '.join(others)} as it is" if others else ""
        yield f"{first} if it has {rank} dimensions{kept}"
    elsewhere = " or ".join(of_rank(names, None)) or "any order"
    yield f"else {elsewhere}" if ranks else elsewhere


def _spelled(said: Said) -> str:
    """What a rule says, as the file has it."""
    match said:
        case Casts():
            return ", ".join(f"({cast.source.word})->{cast.target.word}" for cast in said.casts) or "none"
        case Layouts():
            return ", ".join(said.names) or ANY
        case Contiguous():
            return "contiguous" if said.wanted else "any strides"


def _afterwards(decision: Decision) -> Iterator[Row]:
    param, conversion = decision.param, decision.conversion
    match param.role:
        case Role.OUT | Role.INOUT:
            yield Row(name=param.name, role=param.role.value, what="written back if it was converted", span=None)
        case Role.CALLEE_OUT if conversion is not None and conversion.casts:
            back = ", ".join(f"{cast.target.word} -> {cast.source.word}" for cast in conversion.casts)
            what = f"made anew if the caller expects the other dtype: {back}"
            yield Row(name=param.name, role=param.role.value, what=what, span=None)
        case _:
            return


def table(rows: list[Row]) -> Iterator[str]:
    """The rows in aligned columns."""
    names, roles = (max(map(len, column)) for column in zip(*((row.name, row.role) for row in rows), strict=True))
    whats = max((len(row.what) for row in rows if row.span is not None), default=0)
    for row in rows:
        line = f"    {row.name:{names}}  {row.role:{roles}}  {row.what:{whats}}"
        yield f"{line}  {row.span}" if row.span is not None else line.rstrip()
