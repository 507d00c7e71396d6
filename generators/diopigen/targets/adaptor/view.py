"""What the adaptor's templates lay out: signatures, rules and the conversions of each call, all spelled."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from diopigen.c_spelling import c_args, c_signature
from diopigen.model.op import Function, Param, Role
from diopigen.model.program import Program
from diopigen.model.reserved import free_name
from diopigen.model.type import Fixed, TensorType
from diopigen.model.vendor import Conversion, FunctionPlan, Implementation, Origin
from diopigen.targets.adaptor.rules import RuleView, rule_expression
from diopigen.targets.cpp.lines import WIDTH, folded
from diopigen.targets.header.abi import abi_macro


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceView:
    name: str  # e.g. "impl::droplet"
    declarations: tuple[str, ...]  # e.g. ("diopiError_t diopiRelu(...)",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionView:
    symbol: str  # e.g. "diopiRelu"
    signature: tuple[str, ...]  # e.g. ("DIOPI_EXPORT diopiError_t diopiRelu(...)",)
    call_name: str  # e.g. "call", the variable that makes them
    conversions: tuple[str, ...]  # e.g. ("const auto input_ = call.in(input, kRule1);",)
    room: int  # e.g. 3: converted tensors that are no lists
    call: tuple[str, ...]  # e.g. ("return impl::droplet::diopiRelu(ctx, out_, input_);",)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptorView:
    topic: str  # e.g. "arithmetic"
    source: str  # e.g. "schemas/ops/arithmetic.yaml and vendors/droplet/convert_config.yaml"
    includes: tuple[str, ...]  # e.g. ("adaptor/call.h",), in alphabetical order
    namespaces: tuple[NamespaceView, ...]
    rules: tuple[RuleView, ...]
    functions: tuple[FunctionView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrimitivesView:
    source: str
    namespaces: tuple[NamespaceView, ...]
    exported: tuple[str, ...]  # declarations of those with C linkage
    cast: str | None  # e.g. "impl::portable::diopiCastDtype"; None: the vendor has none and no rule needs it
    copy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordView:
    source: str  # e.g. "schemas/runtime.yaml"
    groups: tuple[str, ...]  # e.g. ("DIOPI_ABI_COMMON", "DIOPI_ABI_FUNCTIONS")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclarationsView:
    source: str  # e.g. "schemas/ops and the sources of vendors/droplet"
    namespace: NamespaceView


def declarations_view(vendor: str, functions: Iterable[Function]) -> DeclarationsView:
    """What the sources of `vendor` include to call each other's functions."""
    declarations = tuple(line for f in functions for line in _declared(f))
    return DeclarationsView(
        source=f"schemas/ops and the sources of vendors/{vendor}",
        namespace=NamespaceView(name=f"impl::{vendor}", declarations=declarations),
    )


def record_view(program: Program) -> RecordView:
    """The ABI record of the vendor: a header counts if the vendor has a function of it."""
    planned = {plan.symbol for plan in program.plans}
    headers = dict.fromkeys(
        f.header for f in program.functions if f.symbol in planned and f.header != program.own_header
    )
    return RecordView(
        source="schemas/runtime.yaml", groups=(abi_macro(None), *(abi_macro(name) for name in sorted(headers)))
    )


def adaptor_view(program: Program, topic: str) -> AdaptorView:
    """Everything that the vendor implements of a program with the ops of one topic."""
    assert program.vendor is not None
    plans = {plan.symbol: plan for plan in program.plans}
    served = [(f, plans[f.symbol]) for f in program.functions if _is_adapted(plans.get(f.symbol))]
    rules = _Rules()
    functions = tuple(_function(function, plan, rules) for function, plan in served)
    lists = any(line.startswith("List<") for f in functions for line in f.conversions)
    call = ("adaptor/call.h",) if rules.views else ()
    return AdaptorView(
        topic=topic,
        source=f"{program.source(topic)} and {program.vendor.config}",
        includes=(*call, "adaptor/export.h", "adaptor/guarded.h", *(("adaptor/list.h",) if lists else ())),
        namespaces=_namespaces((f, plan.implementation) for f, plan in served),
        rules=rules.views,
        functions=functions,
    )


def primitives_view(program: Program) -> PrimitivesView:
    """The vendor's cast and copy."""
    assert program.vendor is not None
    plans = {plan.symbol: plan for plan in program.plans}
    served = [
        (function, plans[function.symbol].implementation)
        for function in program.functions
        if function.symbol in ("diopiCastDtype", "diopiCopyInp") and function.symbol in plans
    ]
    exported = [f for f, implementation in served if implementation.origin is Origin.EXPORTED]
    called = {f.symbol: "" if f in exported else f"{i.namespace}::" for f, i in served}
    return PrimitivesView(
        source=f"vendors/{program.vendor.name}/vendor.yaml",
        namespaces=_namespaces((f, i) for f, i in served if f not in exported),
        exported=tuple(line for f in exported for line in _declared(f)),
        cast=_call(called, "diopiCastDtype"),
        copy=_call(called, "diopiCopyInp"),
    )


def _call(scopes: Mapping[str, str], symbol: str) -> str | None:
    """e.g. "impl::portable::diopiCopyInp", "::diopiCopyInp"; None for what nothing implements."""
    return None if symbol not in scopes else (scopes[symbol] or "::") + symbol


def _is_adapted(plan: FunctionPlan | None) -> bool:
    return plan is not None and plan.implementation.origin is not Origin.EXPORTED


class _Rules:
    """The distinct rules of one file, named in the order of their first use."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def name(self, conversion: Conversion) -> str:
        """e.g. "kRule1"."""
        expression = rule_expression(conversion)
        if len(expression) > WIDTH - len("constexpr auto kRule10 = ;"):
            expression = rule_expression(conversion, "\n    ")
        return self._names.setdefault(expression, f"kRule{len(self._names) + 1}")

    @property
    def views(self) -> tuple[RuleView, ...]:
        return tuple(RuleView(name=name, expression=text) for text, name in self._names.items())


def _namespaces(served: Iterable[tuple[Function, Implementation]]) -> tuple[NamespaceView, ...]:
    declarations: dict[str, list[str]] = {}
    for function, implementation in served:
        declarations.setdefault(implementation.namespace, []).extend(_declared(function))
    return tuple(NamespaceView(name=name, declarations=tuple(lines)) for name, lines in sorted(declarations.items()))


def _function(function: Function, plan: FunctionPlan, rules: _Rules) -> FunctionView:
    conversions = {c.param: c for c in plan.conversions}
    lines: list[str] = []
    renamed: dict[str, str] = {}
    taken = [arg.name for arg in c_args(function)]
    call_name = free_name("call", taken)
    taken.append(call_name)
    for param in function.converted:
        conversion = conversions.get(param.name)
        if conversion is None:
            continue
        local = free_name(f"{param.name}_", taken)
        line = _conversion(function, param, local, call_name, conversion, rules)
        if line is not None:
            lines += folded(line, indent=4)
            taken.append(local)
            renamed[param.name] = f"{local}.data()" if _is_list(param) else local
    args = [renamed.get(arg.name, arg.name) for arg in c_args(function)]
    call = f"return {plan.implementation.namespace}::{function.symbol}({', '.join(args)});"
    return FunctionView(
        symbol=function.symbol,
        signature=folded(f"DIOPI_EXPORT {c_signature(function)}", after=2),
        call_name=call_name,
        conversions=tuple(lines),
        room=max(1, sum(not _is_list(p) for p in function.params if p.name in renamed)),
        call=folded(call, indent=8),
    )


_USE = {Role.IN: "in", Role.OUT: "out", Role.INOUT: "inout"}


def _conversion(
    function: Function, param: Param, local: str, call: str, conversion: Conversion, rules: _Rules
) -> str | None:
    """The statement that converts one parameter to `local`; None where an allocated tensor needs none."""
    if param.role is Role.CALLEE_OUT:
        dtype = _allocated_dtype(function, param, call)
        if dtype is None or not conversion.casts:
            return None
        made = f'{call}.allocated({param.name}, {dtype}, {rules.name(conversion)}, "{param.name}")'
        return f"const auto {local} = {made};"
    use = _USE[param.role]
    if _is_list(param):
        assert param.tensor is not None
        handle = next(a.type for a in c_args(function) if a.name == param.name).removesuffix("*").strip()
        arguments = f'{call}, Use::{use}, {param.name}, {param.tensor.count}, {rules.name(conversion)}, "{param.name}"'
        return f"List<{handle}> {local}({arguments});"
    return f'const auto {local} = {call}.{use}({param.name}, {rules.name(conversion)}, "{param.name}");'


def _allocated_dtype(function: Function, param: Param, call: str) -> str | None:
    """The dtype that the caller expects of an allocated tensor: fixed, or that of an input of its element."""
    assert param.tensor is not None
    element = param.tensor.element
    if isinstance(element, Fixed):
        return f"diopi_dtype_{element.dtype.word}"
    for source in function.ins:
        tensor = source.tensor
        if tensor is not None and tensor.element == element and tensor.count is None and not tensor.optional:
            return f"{call}.dtype({source.name})"
    return None


def _is_list(param: Param) -> bool:
    return isinstance(param.type, TensorType) and param.type.count is not None


def _declared(function: Function) -> tuple[str, ...]:
    return folded(f"{c_signature(function)};")
