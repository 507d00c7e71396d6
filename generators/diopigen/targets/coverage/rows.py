"""What one vendor has of the contract: a row for each function, a cell for each element type."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from diopigen.model.op import Function, Op
from diopigen.model.program import Program
from diopigen.model.type import Fixed
from diopigen.model.vendor import Conversion, FunctionPlan, Origin
from diopigen.targets.coverage.figures import Figures, Run
from diopigen.vocabulary.dtype import DType, DTypes


class State(Enum):
    """How a function, or one element type of it, is served; the order is that of the charts."""

    OWN = "own"  # written by the vendor
    EXPORTED = "exported"  # written with C linkage: exported as it is
    BASE = "base"  # written for another vendor, that this one names as its base
    GENERATED = "generated"  # written for the vendor by a target
    PORTABLE = "portable"  # runtime_cpp/kernels
    KERNEL = "kernel line"  # the schema's `kernel:`
    COMPOSED = "composed"  # calls of other functions
    CONVERTED = "converted"  # the adaptor gives the function another element type; of cells only
    MISSING = "missing"

    @property
    def slug(self) -> str:
        """The name of its style class. e.g. "kernel-line"."""
        return self.value.replace(" ", "-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One element type that a function may be called with."""

    dtype: DType
    state: State
    casts: tuple[tuple[str, DType], ...]  # e.g. (("input", f32),): the parameters that are given as another type
    figures: Figures  # of the cases with this type


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One function of the contract."""

    function: Function
    topic: str  # e.g. "arithmetic"
    state: State
    source: str  # e.g. "vendors/droplet/functions/conv.cpp"; empty for a missing one
    cells: tuple[Cell, ...]
    conversions: tuple[Conversion, ...]
    overloads: tuple[str, ...]  # e.g. ("add.out",): the ATen overloads that may reach it
    figures: Figures  # of the last conformance run

    @property
    def converted(self) -> bool:
        return bool(self.conversions)

    def cell(self, dtype: DType) -> Cell | None:
        return next((cell for cell in self.cells if cell.dtype == dtype), None)


def rows(program: Program, run: Run | None) -> tuple[Row, ...]:
    """A row for each function, in the order of the schemas."""
    ops = {op.name: op for op in program.ops}
    plans = {plan.symbol: plan for plan in program.plans}
    overloads = _overloads(program)
    return tuple(
        _row(function, ops[function.op], plans.get(function.symbol), program.dtypes, overloads, run)
        for function in program.functions
    )


def _row(
    function: Function,
    op: Op,
    plan: FunctionPlan | None,
    dtypes: DTypes,
    overloads: Mapping[str, tuple[str, ...]],
    run: Run | None,
) -> Row:
    state = function_state(plan)
    types = {} if run is None else run.types
    return Row(
        function=function,
        topic=op.topic,
        state=state,
        source="" if plan is None else plan.implementation.source,
        cells=tuple(
            _cell(dtype, state, plan, types.get((function.symbol, dtype.name), Figures()))
            for dtype in dtypes.types
            if dtype in taken(function)
        ),
        conversions=() if plan is None else plan.conversions,
        overloads=overloads.get(function.symbol, ()),
        figures=Figures() if run is None else run.functions.get(function.symbol, Figures()),
    )


def function_state(plan: FunctionPlan | None) -> State:
    """How the function of `plan` is served."""
    if plan is None:
        return State.MISSING
    match plan.implementation.origin:
        case Origin.VENDOR:
            return State.OWN
        case Origin.EXPORTED:
            return State.EXPORTED
        case Origin.BASE:
            return State.BASE
        case Origin.ATEN:
            return State.GENERATED
        case Origin.PORTABLE:
            return State.PORTABLE
        case Origin.GENERATED:
            return State.KERNEL
        case Origin.COMPOSITE:
            return State.COMPOSED
        case other:
            assert_never(other)


def taken(function: Function) -> tuple[DType, ...]:
    """The element types that a caller chooses from: those of the variables; without any, those of the tensors."""
    chosen = tuple(dict.fromkeys(dtype for _, members in function.elements for dtype in members.members))
    fixed = (p.tensor.element for p in function.params if p.tensor is not None)
    return chosen or tuple(dict.fromkeys(element.dtype for element in fixed if isinstance(element, Fixed)))


def _cell(dtype: DType, state: State, plan: FunctionPlan | None, figures: Figures) -> Cell:
    casts = tuple(
        (conversion.param, cast.target)
        for conversion in (() if plan is None else plan.conversions)
        for cast in conversion.casts
        if cast.source == dtype
    )
    return Cell(dtype=dtype, state=State.CONVERTED if casts else state, casts=casts, figures=figures)


def _overloads(program: Program) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for binding in program.bindings:
        for symbol in binding.symbols:
            found[symbol] = (*found.get(symbol, ()), binding.overload.name)
    return found
