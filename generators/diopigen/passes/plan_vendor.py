"""Decides, for one vendor, whose code serves each function and what the adaptor converts for it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.dtype import DType, DTypes, Kind
from diopigen.model.op import Function, Op, Param
from diopigen.model.program import Program
from diopigen.model.type import Accumulate, ComplexOf, Element, Fixed, FloatOf, Promote, RealOf, TensorType, Var
from diopigen.model.vendor import Cast, Conversion, Implementation, Layouts, Origin, Plan, Rule, Vendor

# What every conversion is made of; they are called as they are, so nothing may convert for them.
CAST, COPY = "diopiCastDtype", "diopiCopyInp"
PRIMITIVES = (CAST, COPY)

RANKS = {"NCL": 3, "NLC": 3, "NCHW": 4, "NHWC": 4, "NCDHW": 5, "NDHWC": 5}


def plan_vendor(program: Program, diagnostics: Diagnostics) -> Program:
    """Fills `plans`, in the order of functions; a function that nobody implements has no plan."""
    vendor = program.vendor
    if vendor is None:
        return program
    chosen = _implementations(vendor, program)
    resolver = _Resolver(vendor=vendor, dtypes=program.dtypes)
    ops = {op.name: op for op in program.ops}
    plans = tuple(
        Plan(
            symbol=function.symbol,
            implementation=chosen[function.symbol],
            conversions=tuple(resolver.conversions(function, ops[function.op])),
        )
        for function in program.functions
        if function.symbol in chosen
    )
    _check_rules(program, vendor, plans, diagnostics)
    _check_primitives(vendor, plans, diagnostics)
    return replace(program, plans=plans)


def _implementations(vendor: Vendor, program: Program) -> dict[str, Implementation]:
    """The first of the vendor's own, its base's and the generated one, by symbol."""
    chosen: dict[str, Implementation] = {}
    for implementation in vendor.implementations:
        chosen.setdefault(implementation.symbol, implementation)
    topics = {op.name: op.topic for op in program.ops}
    for called in program.calls:
        function = program.function(called.symbol)
        assert function is not None
        calling = Implementation(
            symbol=called.symbol,
            origin=Origin.ATEN,
            namespace="impl::generated",
            source=f"schemas/ops/{topics[function.op]}.yaml",
            span=called.span,
        )
        chosen.setdefault(called.symbol, calling)
    if vendor.base is None:
        return chosen
    for function in program.functions:
        if function.kernel is not None:
            generated = Implementation(
                symbol=function.symbol,
                origin=Origin.GENERATED,
                namespace="impl::generated",
                source=f"schemas/ops/{topics[function.op]}.yaml",
                span=function.span,
            )
            chosen.setdefault(function.symbol, generated)
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resolver:
    """Finds the rule that speaks for each parameter: the argument's, else the function's, else the common one.

    The most specific level that says something of dtypes decides about dtypes alone; likewise of layouts.
    """

    vendor: Vendor
    dtypes: DTypes

    def conversions(self, function: Function, op: Op) -> Iterator[Conversion]:
        """One for each tensor that has something to convert."""
        if function.symbol in PRIMITIVES:
            return
        for param in function.params:
            if param.tensor is None:
                continue
            casts = self._casts(function, param)
            layouts = self._layouts(function, op, param)
            names = () if layouts is None else fitting(layouts.names, op)
            contiguous = self._contiguous(function)
            if casts or names or contiguous is not None:
                yield Conversion(
                    param=param.name,
                    casts=casts,
                    layouts=names,
                    layout_span=layouts.span if layouts is not None and names else None,
                    contiguous=contiguous is not None,
                    contiguous_span=contiguous,
                )

    def _rules(self, function: Function) -> Iterator[Rule]:
        """The function's own rule, then the common one."""
        for rule in self.vendor.rules:
            if any(symbol == function.symbol for symbol, _ in rule.functions):
                yield rule
        for rule in self.vendor.rules:
            if not rule.functions:
                yield rule

    def _casts(self, function: Function, param: Param) -> tuple[Cast, ...]:
        for rule in self._rules(function):
            single = next((t for t in rule.tensor_casts if t.param == param.name), None)
            casts = rule.casts if single is None else single.casts
            if casts:
                taken = element_dtypes(_element(param), function, self.dtypes)
                return tuple(cast for cast in casts if cast.source in taken)
        return ()

    def _layouts(self, function: Function, op: Op, param: Param) -> Layouts | None:
        for rule in self._rules(function):
            for name in (param.name, None):
                found = next((item for item in rule.layouts if item.param == name), None)
                if found is not None:
                    return found
        return None

    def _contiguous(self, function: Function) -> Span | None:
        for rule in self._rules(function):
            if rule.contiguous is not None:
                return rule.contiguous_span if rule.contiguous else None
        return None


def fitting(names: tuple[str, ...], op: Op) -> tuple[str, ...]:
    """The layouts of `names` for the ranks that the op's own `layouts` speak of."""
    ranks = {RANKS[name] for name in op.layouts if name in RANKS}
    return tuple(name for name in names if RANKS[name] in ranks)


def element_dtypes(element: Element, function: Function, dtypes: DTypes) -> tuple[DType, ...]:
    """Every dtype that a tensor of `element` can have in some call of `function`."""
    match element:
        case Fixed():
            return (element.dtype,)
        case Var():
            found = dict(function.elements).get(element.name)
            return () if found is None else found.members
        case Promote():
            each = (d for e in element.elements for d in element_dtypes(e, function, dtypes))
            return tuple(dict.fromkeys(each))
        case FloatOf():
            inner = element_dtypes(element.element, function, dtypes)
            floats = [d for d in inner if d.kind in (Kind.FLOAT, Kind.COMPLEX)]
            return _with(floats, dtypes.named("f32") if len(floats) < len(inner) else None)
        case Accumulate():
            inner = element_dtypes(element.element, function, dtypes)
            wide = [d for d in inner if d.kind not in (Kind.INTEGER, Kind.BOOL)]
            return _with(wide, dtypes.named("i64") if len(wide) < len(inner) else None)
        case ComplexOf():
            return tuple(dtypes.complex_of(d) for d in element_dtypes(element.element, function, dtypes))
        case RealOf():
            return tuple(dtypes.real_of(d) for d in element_dtypes(element.element, function, dtypes))
        case other:
            assert_never(other)


def _with(found: list[DType], more: DType | None) -> tuple[DType, ...]:
    return tuple(dict.fromkeys([*found, *([] if more is None else [more])]))


def _element(param: Param) -> Element:
    assert isinstance(param.type, TensorType)
    return param.type.element


# -- findings --------------------------------------------------------------------------------------------------


def _check_rules(program: Program, vendor: Vendor, plans: tuple[Plan, ...], diagnostics: Diagnostics) -> None:
    """Warns of each cast and layout that no function of its entry can ever use."""
    planned = {plan.symbol for plan in plans}
    for rule in vendor.rules:
        named = {symbol for symbol, _ in rule.functions}
        for symbol, span in rule.functions:
            if symbol in PRIMITIVES:
                diagnostics.error(
                    "primitive-converted",
                    f"'{symbol}' is what conversions are made of, so it takes every tensor as it is",
                    span,
                    "remove the entry",
                )
            elif symbol not in planned:
                diagnostics.warning(
                    "rule-never-applies", f"nothing implements '{symbol}', so its entry has no effect", span
                )
        functions = [f for f in program.functions if f.symbol in planned and (f.symbol in named or not named)]
        if functions:
            _check_casts(program, rule, functions, diagnostics)
            _check_layouts(program, rule, functions, diagnostics)


def _check_casts(program: Program, rule: Rule, functions: list[Function], diagnostics: Diagnostics) -> None:
    for cast in rule.casts:
        if not any(_takes(cast, f, None, program.dtypes) for f in functions):
            _never(cast.span, f"no tensor of {_those(rule)} can be '{cast.source.word}'", diagnostics)
    for single in rule.tensor_casts:
        for cast in single.casts:
            if not any(_takes(cast, f, single.param, program.dtypes) for f in functions):
                _never(cast.span, f"'{single.param}' can never be '{cast.source.word}'", diagnostics)


def _check_layouts(program: Program, rule: Rule, functions: list[Function], diagnostics: Diagnostics) -> None:
    ops = [op for op in program.ops if any(f.op == op.name for f in functions)]
    for layouts in rule.layouts:
        for name in layouts.names:
            if not any(fitting((name,), op) for op in ops):
                message = f"no tensor of {_those(rule)} has {RANKS[name]} dimensions with a layout"
                _never(layouts.span, message, diagnostics)


def _takes(cast: Cast, function: Function, param: str | None, dtypes: DTypes) -> bool:
    return any(
        cast.source in element_dtypes(_element(p), function, dtypes)
        for p in function.params
        if p.tensor is not None and param in (None, p.name)
    )


def _those(rule: Rule) -> str:
    if not rule.functions:
        return "any function"
    first = f"'{rule.functions[0][0]}'"
    return first if len(rule.functions) == 1 else f"{first} or the others"


def _never(span: Span, why: str, diagnostics: Diagnostics) -> None:
    diagnostics.warning("rule-never-applies", f"this rule has no effect: {why}", span, "remove it")


def _check_primitives(vendor: Vendor, plans: tuple[Plan, ...], diagnostics: Diagnostics) -> None:
    """Refuses conversions that the vendor has no code to make."""
    present = {plan.symbol for plan in plans}
    conversions = [c for plan in plans for c in plan.conversions]
    casts = next((cast.span for c in conversions for cast in c.casts), None)
    copies = next((s for c in conversions for s in (c.layout_span, c.contiguous_span) if s is not None), None)
    for symbol, needed_by in ((CAST, casts), (COPY, copies)):
        if needed_by is not None and symbol not in present:
            diagnostics.error(
                "missing-primitive",
                f"this rule needs '{symbol}', which '{vendor.name}' does not implement",
                needed_by,
                f"implement it in namespace impl::{vendor.name}, or write 'base: portable' in vendor.yaml",
            )
