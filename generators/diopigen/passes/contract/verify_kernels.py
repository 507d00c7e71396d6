"""The rules of `kernel:`: an expression reads what its function is given, and means something for one element."""

from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.diagnostics import Span
from diopigen.model.expr import (
    Binary,
    Call,
    Expr,
    Name,
    Number,
    Text,
    Unary,
    calls,
    children,
    names,
    signed_constants,
    walk,
)
from diopigen.model.op import Form, Function, Op, Param, Place, Role
from diopigen.model.program import Program
from diopigen.model.type import ENUMERATORS, NUMBERS, FloatOf, TensorType, Value, ValueType
from diopigen.passes.contract.ranges import computes_with, constant
from diopigen.text import listing, suggestion
from diopigen.vocabulary.dtype import Kind

MOST_OPERANDS = 5  # tensors, and numbers and conditions: kMaxInputs of runtime_cpp/kernels/elementwise/pointwise.h

# Functions of a kernel expression with the number of their arguments; runtime_cpp/kernels/math/math.h has them.
OF_FLOATS = """
    exp expm1 log log1p log2 log10 sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
    erf erfinv sigmoid
"""
UNARY = f"{OF_FLOATS} abs sign floor ceil round trunc isnan isinf"
BINARY = "pow remainder floor_div trunc_div min max"
MATH: dict[str, int] = {
    **{name: 1 for name in UNARY.split()},
    **{name: 2 for name in BINARY.split()},
    "where": 3,
    "given": 1,  # whether an optional argument is there
}

BARE_WORDS = {word for words in ENUMERATORS.values() for word in words}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule says of one op."""

    code: str
    message: str
    span: Span
    hint: str | None = None
    about: tuple[str, ...] = ()  # the op or function of another entry that it is about


def v3_kernels_are_elementwise(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V3: a kernel reads only what its function is given, calls only known functions, and writes one tensor."""
    seen: set[tuple[str, Span, str]] = set()
    for function in functions:
        for finding in _findings_of(op, function):
            key = (finding.code, finding.span, finding.message.replace(function.symbol, ""))
            if key not in seen:  # the forms share the kernel and its mistakes
                seen.add(key)
                yield finding


def _findings_of(op: Op, function: Function) -> Iterator[Finding]:
    if function.kernel is None:
        return
    written = [p for p in function.params if p.role in (Role.OUT, Role.INOUT)]
    if len(written) != 1 or not isinstance(written[0].type, TensorType) or written[0].type.count is not None:
        yield Finding(
            code="not-elementwise",
            message=f"'{function.symbol}' has a kernel, but not one tensor that it writes",
            span=_kernel_place(op, function).span,
            hint="remove 'kernel', and write a portable kernel for it",
        )
        return
    place = _kernel_place(op, function)
    found = tuple(_kernel_findings(function.kernel, function, place))
    yield from found
    if not found:
        yield from _operand_findings(function.kernel, function, place)
        yield from _type_findings(function.kernel, op, function, place)


def _kernel_place(op: Op, function: Function) -> Place:
    return op.place("backward.kernel" if function.form is Form.BACKWARD else "kernel")


def _kernel_findings(expr: Expr, function: Function, place: Place) -> Iterator[Finding]:
    params = {p.name: p for p in function.params if p.role in (Role.IN, Role.INOUT)}
    for name in names(expr):
        if name not in params and name not in BARE_WORDS:
            yield Finding(
                code="unknown-arg",
                message=f"the kernel of '{function.symbol}' reads '{name}', which is not a parameter",
                span=place.word(name),
                hint=suggestion(name, params) or f"the parameters are {', '.join(params)}",
            )
    for call in calls(expr):
        if call.function not in MATH:
            yield Finding(
                code="unknown-function",
                message=f"kernels have no function '{call.function}'",
                span=place.word(call.function),
                hint=suggestion(call.function, MATH),
            )
        elif len(call.args) != MATH[call.function]:
            yield Finding(
                code="wrong-arity",
                message=f"'{call.function}' takes {MATH[call.function]} arguments, not {len(call.args)}",
                span=place.word(call.function),
            )
        elif call.function == "given" and not _may_be_absent(call.args[0], params):
            yield Finding(
                code="wrong-argument",
                message=f"'given' needs an optional argument, and '{call.args[0]}' is not optional",
                span=place.word(call.function),
                hint="mark the argument with '?', or leave 'given' out",
            )
    for text, words in _foreign_texts(expr, params):
        yield Finding(
            code="unknown-word",
            message=f"'{text}' is not a value of the argument it is compared with",
            span=place.word(text),
            hint=suggestion(text, words) or f"use {listing(words)}",
        )
    for text in _loose_texts(expr, params):
        yield Finding(
            code="loose-text",
            message=f"'{text}' can only be compared with an argument of type str or an enum",
            span=place.word(text),
        )


def _operand_findings(kernel: Expr, function: Function, place: Place) -> Iterator[Finding]:
    """What is read for each element has a form that a kernel takes, and is not too much."""
    params = {p.name: p for p in function.params}
    conditions = {str(part) for part in _host_conditions(kernel, params)}
    read = {name: params[name] for name in _element_names(kernel, params)}
    asked = {name: params[name] for c in _host_conditions(kernel, params) for name in names(c) if name in params}
    for name, param in {**asked, **read}.items():
        type_ = param.type
        if isinstance(type_, ValueType):
            unread = name in read and (
                type_.many or type_.value not in NUMBERS or (type_.optional and type_.value is not Value.SCALAR)
            )
        else:
            unread = name in read and type_.count is not None
        if unread or not param.usual_in_c:
            spelled = param.c if not param.usual_in_c else type_
            yield Finding(
                code="not-a-number",
                message=f"the kernel of '{function.symbol}' cannot compute with '{name}', which is a '{spelled}'",
                span=place.word(name),
                hint="kernels read tensors, numbers and bools that are never absent",
            )
    if not read and not conditions:
        yield Finding(
            code="not-elementwise",
            message=f"the kernel of '{function.symbol}' reads no argument",
            span=place.span,
            hint="compose it of 'fill', or write a portable kernel for it",
        )
    tensors = sum(p.tensor is not None for p in read.values())
    for count, what in ((tensors, "tensors"), (len(read) - tensors + len(conditions), "numbers and conditions")):
        if count > MOST_OPERANDS:
            yield Finding(
                code="too-many-operands",
                message=f"the kernel of '{function.symbol}' reads {count} {what}, and kernels take {MOST_OPERANDS}",
                span=place.span,
                hint="compose it of several functions, or write a portable kernel for it",
            )


def _element_names(expr: Expr, params: dict[str, Param]) -> Iterator[str]:
    """The arguments that are read for each element."""
    match expr:
        case Name() if expr.name in params:
            yield expr.name
        case Call(function="given"):
            return
        case Binary() if _is_host_condition(expr, params):
            return
        case _:
            for part in children(expr):
                yield from _element_names(part, params)


def _host_conditions(expr: Expr, params: dict[str, Param]) -> Iterator[Expr]:
    """What is decided once for all elements."""
    if (isinstance(expr, Binary) and _is_host_condition(expr, params)) or (
        isinstance(expr, Call) and expr.function == "given"
    ):
        yield Binary(op="==", left=expr.left, right=expr.right) if isinstance(expr, Binary) else expr
        return
    for part in children(expr):
        yield from _host_conditions(part, params)


def _is_host_condition(expr: Binary, params: dict[str, Param]) -> bool:
    left = params.get(expr.left.name) if isinstance(expr.left, Name) else None
    wordy = isinstance(expr.right, Text) or (isinstance(expr.right, Name) and expr.right.name not in params)
    return expr.op in ("==", "!=") and wordy and left is not None and isinstance(left.type, ValueType)


_BITS = ("~", "&", "|", "^")


def _type_findings(kernel: Expr, op: Op, function: Function, place: Place) -> Iterator[Finding]:
    """What the expression means in each dtype that it may compute in."""
    floating = function.form is not Form.BACKWARD and any(
        isinstance(out.type, TensorType) and isinstance(out.type.element, FloatOf) for out in op.outs
    )
    dtypes = tuple(dict.fromkeys(t for _, members in function.elements for t in members.members))
    computed = tuple(t for t in dtypes if not floating or t.kind is Kind.FLOAT)
    if floating or any(t.kind is Kind.FLOAT for t in dtypes):
        for word in dict.fromkeys(
            part.op for part in walk(kernel) if isinstance(part, Unary | Binary) and part.op in _BITS
        ):
            yield Finding(
                code="bits-of-float",
                message=f"'{word}' takes integers and bools; the kernel of '{function.symbol}' may have floats",
                span=place.span,
                hint="use 'and', 'or' and 'not' for bools, or leave floats out of 'where'",
            )
    others = [t.name for t in computed if t.kind is not Kind.FLOAT]
    for call in calls(kernel) if others else ():
        if call.function in OF_FLOATS.split():
            yield Finding(
                code="floats-only",
                message=f"'{call.function}' takes floats; the kernel of '{function.symbol}' may have {listing(others)}",
                span=place.word(call.function),
                hint="give the output the element 'float(T)', or leave others than floats out of 'where'",
            )
    for value in signed_constants(kernel):
        lacking = [t.name for t in computed if t.kind is not Kind.BOOL and not computes_with(t, constant(value) or 0)]
        if lacking:
            yield Finding(
                code="out-of-range",
                message=f"{value} is out of range for {listing(lacking)}, which '{function.symbol}' may compute in",
                span=place.word(str(value).lstrip("-")),
                hint="leave those out of 'where', or write a number that all of them hold",
            )


def _comparisons(expr: Expr) -> Iterator[Binary]:
    return (part for part in walk(expr) if isinstance(part, Binary) and part.op in ("==", "!="))


def _may_be_absent(expr: Expr, params: dict[str, Param]) -> bool:
    return isinstance(expr, Name) and expr.name in params and params[expr.name].type.optional


def _foreign_texts(expr: Expr, params: dict[str, Param]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Words that are compared with an argument which cannot have them, and what it can have."""
    for comparison in _comparisons(expr):
        left = params.get(comparison.left.name) if isinstance(comparison.left, Name) else None
        if left is None or not isinstance(left.type, ValueType):
            continue
        words = words_of(left.type)
        match comparison.right:
            case Text(text=text) | Name(name=text):
                if words and text not in words:
                    yield text, words
            case _:
                pass


def _loose_texts(expr: Expr, params: dict[str, Param]) -> Iterator[str]:
    """Quoted words and enumerators outside of a comparison with an argument that has such values."""
    match expr:
        case Text():
            yield expr.text
        case Name():
            if expr.name in BARE_WORDS and expr.name not in params:
                yield expr.name
        case Binary():
            left = params.get(expr.left.name) if isinstance(expr.left, Name) else None
            wordy = (
                left is not None
                and isinstance(left.type, ValueType)
                and (left.type.value is Value.STR or left.type.value in ENUMERATORS)
            )
            if not (wordy and expr.op in ("==", "!=")):
                yield from _loose_texts(expr.left, params)
                yield from _loose_texts(expr.right, params)
        case Unary():
            yield from _loose_texts(expr.operand, params)
        case Call():
            for arg in expr.args:
                yield from _loose_texts(arg, params)
        case Number():
            return


def words_of(type_: ValueType) -> tuple[str, ...]:
    return type_.words or tuple(ENUMERATORS.get(type_.value, ()))
