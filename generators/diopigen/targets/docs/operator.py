"""The page of one operator."""

from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.model.expr import Expr
from diopigen.model.op import Form, Function, Op
from diopigen.targets.docs.bindings import BindingView, binding_view
from diopigen.targets.docs.formula import mathml
from diopigen.targets.docs.functions import FunctionView, ParamRow, arguments, function_view
from diopigen.targets.docs.kernel_math import kernel_tex
from diopigen.targets.docs.markdown import code, prose
from diopigen.targets.docs.paths import operator_page, place, relative, topic_page
from diopigen.targets.docs.site import Index, Site
from diopigen.targets.docs.vendors import VendorsView, vendors_view
from diopigen.vocabulary.dtype import DTypeSet

LONGEST = 100  # characters of a kernel that is shown as a formula too


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRow:
    variable: str  # e.g. "T"
    members: str  # e.g. "`f16`, `f32`"
    functions: str  # e.g. "`diopiReluBackward`"; "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardView:
    symbol: str
    formula: str | None  # one <math> element
    kernel: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceView:
    rows: str  # e.g. "5 rows of cases"; empty where there is none
    check: str  # e.g. "close"
    tolerance: str  # e.g. "f16 0.01 and 0.001"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorView:
    source: str  # e.g. "schemas/ops/arithmetic.yaml"
    name: str
    title: str  # the name, as Markdown
    doc: str
    deprecated: str | None
    topic: str
    topic_link: str
    header: str
    place: str
    formula: str | None
    arguments: tuple[ParamRow, ...]
    functions: tuple[FunctionView, ...]
    types: tuple[TypeRow, ...]
    layouts: str
    kernel: str | None
    backward: BackwardView | None
    bindings: tuple[BindingView, ...]
    vendors: VendorsView
    conformance: ConformanceView
    entry: str  # the YAML, indented as a block of a list


def operator_view(op: Op, site: Site, index: Index) -> OperatorView:
    """The view. Raises BadFormula."""
    page, shown = operator_page(op.topic, op.name), frozenset(site.sources)
    functions = index.functions[op.name]
    return OperatorView(
        source=op.span.path,
        name=op.name,
        title=prose(op.name),
        doc=prose(op.doc),
        deprecated=None if op.deprecated is None else prose(op.deprecated),
        topic=prose(op.topic),
        topic_link=relative(page, topic_page(op.topic)),
        header=op.header,
        place=place(page, op.span, shown),
        formula=_formula(op),
        arguments=arguments(op),
        functions=tuple(function_view(op, function) for function in functions),
        types=tuple(_types(functions)),
        layouts=", ".join(map(code, op.layouts)),
        kernel=None if op.kernel is None else str(op.kernel),
        backward=_backward(op, functions),
        bindings=tuple(
            binding_view(b, place(page, b.span, shown, f"line {b.span.line}")) for b in index.bindings[op.name]
        ),
        vendors=vendors_view(functions, site, index, page),
        conformance=_conformance(op),
        entry=_entry(op, site),
    )


def _formula(op: Op) -> str | None:
    """What the schema says, else what its kernel computes."""
    if op.math is not None:
        return mathml(op.math, "math")
    return None if op.kernel is None or len(op.outs) != 1 else _equation(op.outs[0].name, op.kernel, "kernel")


def _equation(output: str, kernel: Expr, path: str) -> str | None:
    """A kernel as a formula; None where it is too long to be read as one."""
    return mathml(kernel_tex(output, kernel), path) if len(str(kernel)) <= LONGEST else None


def _backward(op: Op, functions: tuple[Function, ...]) -> BackwardView | None:
    function = next((f for f in functions if f.form is Form.BACKWARD), None)
    if op.backward is None or function is None:
        return None
    kernel = op.backward.kernel
    formula = None
    if op.backward.math is not None:
        formula = mathml(op.backward.math, "backward.math")
    elif kernel is not None and len(function.outs) == 1:
        formula = _equation(function.outs[0].name, kernel, "backward.kernel")
    return BackwardView(symbol=function.symbol, formula=formula, kernel=None if kernel is None else str(kernel))


def _types(functions: tuple[Function, ...]) -> Iterator[TypeRow]:
    """A row for each variable and set; functions for which a variable means the same share it."""
    together: dict[tuple[str, DTypeSet], list[str]] = {}
    for function in functions:
        for variable, members in function.elements:
            together.setdefault((variable, members), []).append(function.symbol)
    for (variable, members), symbols in together.items():
        every = len(symbols) == len(functions)
        yield TypeRow(
            variable=code(variable),
            members=", ".join(code(dtype.name) for dtype in members.members),
            functions="all" if every else ", ".join(map(code, symbols)),
        )


def _conformance(op: Op) -> ConformanceView:
    return ConformanceView(
        rows=_rows(len(op.cases)),
        check=op.check,
        tolerance=", ".join(f"{dtype} {relative_:g} and {absolute:g}" for dtype, relative_, absolute in op.tolerance),
    )


def _rows(count: int) -> str:
    return {0: "", 1: "One row of cases"}.get(count, f"{count} rows of cases")


def _entry(op: Op, site: Site) -> str:
    """The op's lines of its file, up to the next entry or the comment above it."""
    lines = site.sources[op.span.path].split("\n")[op.span.line - 1 :]
    end = next((n for n, line in enumerate(lines) if n and line and not line.startswith(" ")), len(lines))
    return "\n".join("    " + line if line else "" for line in lines[:end]).rstrip()
