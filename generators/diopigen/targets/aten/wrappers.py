"""The C++ function that PyTorch's dispatcher calls for one overload."""

from collections.abc import Sequence
from dataclasses import dataclass

from diopigen.model.op import Op, Param, Role
from diopigen.model.type import Fixed, ShapeCall, ShapeName, TensorType, ValueType
from diopigen.targets.aten.arguments import CPP, derived
from diopigen.targets.aten.calls import WrapperCall
from diopigen.targets.aten.casts import known_dtypes
from diopigen.targets.aten.elements import Elements, floats_only, has_scalar_type, variables
from diopigen.targets.aten.served import Served, outputs, written_tensors
from diopigen.targets.aten.shapes import OutputShape, Shapes
from diopigen.targets.aten.text import cpp_type
from diopigen.targets.cpp.lines import folded
from diopigen.vocabulary.checks import CHECK

_Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TryView:
    """Outputs are made, and returned if the function ran."""

    when: tuple[str, ...] = ()  # e.g. ("!transposed",): what the functions take; checked before outputs are allocated
    setup: tuple[str, ...]  # e.g. ("at::Tensor out = new_like(self);",)
    call: tuple[str, ...]  # the condition that it ran: ("call_add_Tensor(self, other, alpha, out, common)",)
    result: tuple[str, ...]  # e.g. ("return out;",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FastView:
    """The usual case, without the meta function."""

    condition: str  # e.g. "fast_inputs(self, other)"
    served: TryView


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckView:
    """Arguments that torch may refuse are its own kernel's."""

    condition: tuple[str, ...]  # e.g. ("!checks::asked(checks::distance(p))",)
    fallback: tuple[str, ...]  # e.g. ("return at::_ops::dist::redispatch(kFallback, self, p);",)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperView:
    name: str  # e.g. "add_Tensor"
    overload: str  # e.g. "add.Tensor"
    control: tuple[str, ...]  # e.g. ('OperatorControl add_control{"add.Tensor", {.f16 = {0.01, 0.001}}};',)
    head: tuple[str, ...]  # e.g. ("at::Tensor add_Tensor(const at::Tensor& self, const at::Tensor& other)",)
    interposed: tuple[str, ...]  # the return statement when a debug feature is on
    check: CheckView | None
    fast: FastView | None
    tried: tuple[TryView, ...]  # one for each op; of several each has a condition
    fallback: tuple[str, ...]
    registered: tuple[str, ...]  # with the functions that it may reach


class Unservable(Exception):
    """A wrapper that cannot be generated, with the reason."""


def check(served: Served, op: Op) -> None:
    """Raises Unservable when an output's shape or dtype is not to be had."""
    for param in (param for function in served.functions for param in function.params if param.tensor is not None):
        element = param.tensor.element if param.tensor is not None else None
        if isinstance(element, Fixed) and not has_scalar_type(element.dtype):
            raise Unservable(f"'{param.name}' is of the element type {element.dtype.name}, which torch lacks")
    if served.overload.cpp.meta is None:
        _plain(served, op)


def wrapper(parts: Sequence[tuple[Served, Op, WrapperCall]]) -> WrapperView:
    """The wrapper of one binding, of whose ops each part is one.

    Raises Unservable when an output's shape or dtype is not to be had.
    """
    served, op, call = parts[0]
    cpp = served.overload.cpp
    name, params = cpp.operator, ", ".join(f"{cpp_type(t)} {n}" for t, n in cpp.params)
    fast = _fast(served, call)
    symbols = dict.fromkeys(symbol for part, _, _ in parts for symbol in part.binding.symbols)
    reached = ", ".join(f"&vendor::{symbol}" for symbol in symbols)
    return WrapperView(
        name=name,
        overload=served.overload.name,
        control=folded(f'constinit OperatorControl {name}_control{{"{served.overload.name}"{_judgement(op)}}};'),
        head=folded(f"{cpp_type(cpp.returns)} {name}({params})", after=2),
        interposed=_redispatch(served, "kInterposer", indent=8),
        check=_check(served),
        fast=fast,
        tried=tuple(_tried(*part, nested=fast is not None) for part in parts),
        fallback=_redispatch(served, "kFallback", indent=4),
        registered=folded(f"registrar.add_any({name}_control, &{name}, {{{reached}}});", indent=4),
    )


def _check(served: Served) -> CheckView | None:
    if not served.binding.checks:
        return None
    passed = " && ".join(derived(check, "checks") for check in served.binding.checks)
    condition = folded(f"!checks::asked({passed})", indent=8, hang=0, after=3)
    return CheckView(condition=condition, fallback=_redispatch(served, "kFallback", indent=8))


def _tried(served: Served, op: Op, call: WrapperCall, nested: bool) -> TryView:
    structured = served.overload.cpp.meta is not None
    setup, fits, outs, result = _structured(served) if structured else _plain(served, op)
    common = "op.compute_dtype({})" if structured else "common"
    when = _taken(call, _apart(served), None if structured else _real(served), structured)
    called = _called(call, outs, common.format(_first_tensor(served)), fits, indent=8 if nested or when else 4)
    return TryView(when=when, setup=setup, call=called, result=result)


def _judgement(op: Op) -> str:
    """The initializer of a control byte's judgement; nothing where the usual rule holds."""
    pairs = {dtype: (relative, absolute) for dtype, relative, absolute in op.tolerance}
    parts = [f".{d} = {{{pairs[d][0]}, {pairs[d][1]}}}" for d in ("f16", "bf16", "f32", "f64") if d in pairs]
    parts += [".positions = true"] if CHECK[op.check].positions else []
    parts += [".random = true"] if CHECK[op.check].random else []
    return f", {{{', '.join(parts)}}}" if parts else ""


def _redispatch(served: Served, key: str, indent: int) -> tuple[str, ...]:
    cpp = served.overload.cpp
    return folded(f"return at::_ops::{cpp.operator}::redispatch({', '.join((key, *cpp.redispatch))});", indent)


def _called(call: WrapperCall, outs: _Lines, common: str, fits: tuple[_Lines, ...] = (), indent: int = 8) -> _Lines:
    """The condition that each output which is given fits, and that the function ran."""
    given = (*call.args, *outs, *((common,) if call.common else ()))
    conditions = (*(f"fit({', '.join(fit)})" for fit in fits), f"{call.name}({', '.join(given)})")
    return folded(" && ".join(conditions), indent + 4, hang=0, after=3)


def _real(served: Served) -> str | None:
    """Of an out= form: that its output holds what the input has; of complex numbers torch gives real results, too."""
    given = _given_outs(served)
    first = _first_tensor(served)
    return f"castable({first}, {given[0]}.scalar_type())" if given and first and len(given) == 1 else None


def _apart(served: Served) -> tuple[str, ...]:
    """That what is written lies apart from what is read: a TensorIterator sees to it itself."""
    overload = served.overload
    if overload.cpp.iterator:
        return ()
    tensors = [a for a in overload.args if a.type.startswith("Tensor")]
    written = [a.name for a in tensors if a.mutated and a.type == "Tensor"]
    read = [a.name for a in tensors if not a.mutated]
    head = "is_apart<true>" if served.elementwise else "is_apart"
    return tuple(f"{head}({', '.join([out, *written[i + 1 :], *read])})" for i, out in enumerate(written))


def _taken(call: WrapperCall, apart: tuple[str, ...], real: str | None, structured: bool) -> tuple[str, ...]:
    """The condition under which one of the routes takes the arguments; nothing if the last takes all."""
    conditions = [route.condition for route in call.view.routes if route.condition is not None]
    if structured or not call.view.open:
        conditions = []
    chosen = [f"({c})" if " && " in c and len(conditions) > 1 else c for c in conditions]
    always = [c for c in (*apart, real) if c is not None]
    either = " || ".join(chosen)
    every = [*always, f"({either})" if always and len(chosen) > 1 else either] if chosen else always
    return folded(" && ".join(every), indent=8, hang=0, after=3) if every else ()


def _first_tensor(served: Served) -> str:
    return next((a.name for a in served.overload.args if a.type == "Tensor" and not a.out), "")


def _given_outs(served: Served) -> tuple[str, ...]:
    return tuple(a.name for a in served.overload.args if a.out)


def _returned(served: Served, names: tuple[str, ...]) -> str:
    """The return statement of an out= or in-place form."""
    if served.overload.inplace:
        names = tuple(a.name for a in served.overload.args if a.mutated)[: len(served.overload.returns)]
    if not names:
        return "return;"
    return f"return {names[0]};" if len(names) == 1 else f"return std::forward_as_tuple({', '.join(names)});"


def _structured(served: Served) -> tuple[_Lines, tuple[_Lines, ...], _Lines, _Lines]:
    cpp, overload = served.overload.cpp, served.overload
    count = len(overload.returns)
    kernel = f"at::meta::structured_{cpp.meta}"
    meta = folded(f"op.meta({', '.join(cpp.meta_args)});", indent=8)
    outs = tuple(f"op.output({i})" for i in range(count))
    given = _given_outs(served)
    if overload.inplace:
        # The call writes the operator's own tensor: torch's meta function has checked that it may.
        return (f"Inplace<{kernel}> op(self);", *meta), (), (), (_returned(served, ()),)
    if given:
        return (
            (f"OutVariant<{kernel}, {count}> op({', '.join(given)});", *meta),
            (),
            outs,
            (
                "op.flush();",
                _returned(served, given),
            ),
        )
    moved = [f"std::move(op.outputs[{i}])" for i in range(count)]
    result = moved[0] if count == 1 else f"std::make_tuple({', '.join(moved)})"
    return (f"Functional<{kernel}, {count}> op;", *meta), (), outs, (f"return {result};",)


def _plain(served: Served, op: Op) -> tuple[_Lines, tuple[_Lines, ...], _Lines, _Lines]:
    """What is set up, what must hold of outputs that are given, what is written, and the return statement."""
    names = tuple(name for _, name in outputs(served))
    setup = [*_common(served, op), *_checked(served, op)]
    if served.overload.inplace:
        return tuple(setup), (), names, (_returned(served, names),)
    given = _given_outs(served)
    if given:
        fits = tuple(_fit(served, op, param, out) for (param, _), out in zip(outputs(served), given, strict=True))
        return tuple(setup), fits, given, (_returned(served, given),)
    for index, (param, name) in enumerate(outputs(served)):
        setup.extend(_allocation(served, op, param, name, index))
    moved = [f"std::move({n})" for n in names]
    result = names[0] if len(names) == 1 else f"std::make_tuple({', '.join(moved)})"
    return tuple(setup), (), names, (f"return {result};",)


def _common(served: Served, op: Op) -> tuple[str, ...]:
    """The dtype in which the inputs of a plain elementwise operator meet."""
    if not served.promotes:
        return ()
    linked = Elements(function=served.main, common="common", inplace=False).linked()
    sources = served.sources
    raising = _raising(served, op)
    names = [
        getattr(sources[p.name], "name", "")
        for p in served.main.params
        if p.name in raising
        or (p.role is not Role.OUT and p.tensor is not None and set(variables(p.tensor.element)) & linked)
    ]
    chosen = {name for clause in op.aten for name in clause.promote}
    present = [n for n in names if n and (not chosen or n in chosen)]
    present += [a.name for a in served.overload.args if a.name in chosen and a.type == "Scalar" and a.name not in names]
    if not present:
        return ()
    return (f"const c10::ScalarType common = common_type({', '.join(present)});",)


def _raising(served: Served, op: Op) -> frozenset[str]:
    """The numbers that take part in the promotion: each stands for a tensor with an element of its own."""
    tensors = [p.tensor.element for p in served.main.params if p.tensor is not None and p.role is not Role.OUT]
    taken = {v for element in tensors for v in variables(element)}
    return frozenset(
        arg.name
        for arg in op.args
        if arg.scalar and isinstance(arg.type, TensorType) and not set(variables(arg.type.element)) & taken
    )


def _checked(served: Served, op: Op) -> tuple[str, ...]:
    """In place, what numbers raise the result to must fit the tensor's own dtype."""
    raising = _raising(served, op) if served.overload.inplace and served.elementwise else frozenset()
    if not raising:
        return ()
    element = op.outs[0].type
    assert isinstance(element, TensorType)
    target = next(iter(written_tensors(served)))
    numbers = [getattr(source, "name", "") for name, source in served.sources.items() if name in raising]
    common = f"common_type({', '.join([target, *numbers])})"
    elements = Elements(function=served.main, common=common, inplace=False)
    return (f"check_cast({elements.spelled(element.element)}, {target});",)


def _fit(served: Served, op: Op, param: Param, name: str) -> _Lines:
    """What the call takes that resizes an output which the operator is given."""
    overload, function = served.overload, served.main
    if param.role in (Role.HOST_OUT, Role.CALLEE_OUT) or param.tensor is None or param.tensor.count is not None:
        raise Unservable(f"'{function.symbol}' allocates '{name}', which '{overload.name}' is given")
    shape, dtype = _made(served, op, param)
    if shape is None:
        raise Unservable(f"the shape of '{name}' is not to be had from '{overload.name}'")
    return name, shape.sizes, dtype or f"{name}.scalar_type()", *_places(served)


def _made(served: Served, op: Op, param: Param) -> tuple[OutputShape | None, str | None]:
    """The shape and the dtype of an output, as far as the arguments tell them."""
    overload, function, sources = served.overload, served.main, served.sources
    shape = Shapes(op=op, function=function, overload=overload, sources=sources).output(param)
    elements = Elements(function=function, common="common" if _common(served, op) else None, inplace=False)
    return shape, elements.output(param, known_dtypes(function, sources))


def _allocation(served: Served, op: Op, param: Param, name: str, index: int) -> _Lines:
    overload, function = served.overload, served.main
    if param.role is Role.HOST_OUT:
        assert isinstance(param.type, ValueType)
        if param.type.value not in CPP:
            raise Unservable(f"'{function.symbol}' gives '{name}', which is '{param.type}' in host memory")
        return (f"{CPP[param.type.value]} {name}{{}};",)
    if param.role is Role.CALLEE_OUT:
        return (f"at::Tensor {name};",)
    if param.tensor is not None and param.tensor.count is not None:
        return _list_allocation(served, param, name)
    shape, dtype = _made(served, op, param)
    if shape is None or dtype is None:
        raise Unservable(f"the shape or dtype of '{name}' is not to be had from '{overload.name}'")
    masked = param.type.optional and overload.arg("output_mask") is not None
    head = f"at::Tensor {name} = " + (f"output_mask[{index}] ? " if masked else "")
    tail = ") : at::Tensor();" if masked else ");"
    contiguous = any(clause.contiguous for clause in op.aten)
    if shape.like is not None and not contiguous:
        return folded(f"{head}new_preserved({shape.like}, {dtype}{tail}", indent=8)
    place = f"{_device(served)}.index()"
    if shape.operands and not contiguous:
        operands = ", ".join(f"&{name}" for name in shape.operands)
        return folded(f"{head}new_broadcast({shape.sizes}, {dtype}, {place}, {{{operands}}}{tail}", indent=8)
    ordering = [name for clause in op.aten for name in clause.channels_of if overload.arg(name) is not None]
    if ordering:
        operands = ", ".join(f"&{name}" for name in dict.fromkeys(ordering))
        if not op.layouts:
            raise Unservable(
                f"'channels_of' says which dimension of '{name}' is innermost; {op.name} needs 'layouts' for it"
            )
        spatial = len(op.layouts[0]) - 2  # beside batch and channels
        return folded(f"{head}new_ordered({shape.sizes}, {dtype}, {place}, {spatial}, {{{operands}}}{tail}", indent=8)
    return folded(f"{head}new_contiguous({shape.sizes}, {dtype}, {place}{tail}", indent=8)


def _list_allocation(served: Served, param: Param, name: str) -> tuple[str, ...]:
    """A list of outputs, one for each tensor of the only list that the operator takes."""
    lists = [a.name for a in served.overload.args if a.type == "Tensor[]" and not a.out]
    match param.shape:
        case ShapeName():
            sizes = ""
        case ShapeCall(rule="scalar"):
            sizes = ", shape::scalar()"
        case _:
            lists = []
    if len(lists) != 1 or _given_outs(served):
        raise Unservable(f"the shapes of '{name}' are not to be had from '{served.overload.name}'")
    return (f"const std::vector<at::Tensor> {name} = new_each({lists[0]}{sizes});",)


def _places(served: Served) -> tuple[str, ...]:
    """Where an operator of tensors makes its result; one of none makes it where the caller's output is."""
    read = any(a.type in ("Tensor", "Tensor[]") and not a.out for a in served.overload.args)
    return (_device(served),) if read else ()


def _device(served: Served) -> str:
    """The device of the outputs: that of the first tensor, or the first one that is no scalar on the CPU."""
    tensors = [a.name for a in served.overload.args if a.type == "Tensor" and not a.out]
    if tensors:
        return f"{tensors[0]}.device()" if len(tensors) == 1 else f"device_of({', '.join(tensors)})"
    lists = [a.name for a in served.overload.args if a.type == "Tensor[]"]
    if lists:
        return f"first_of({lists[0]}).device()"
    raise Unservable(f"'{served.overload.name}' has no tensor to take the device from")


def _fast(served: Served, call: WrapperCall) -> FastView | None:
    """Only for elementwise operators whose every argument may be a plain float tensor."""
    overload, function = served.overload, served.main
    tensors = [a.name for a in overload.args if a.type == "Tensor" and not a.out]
    optional = any(a.type in ("Tensor?", "Scalar?") for a in overload.args)
    if not (overload.cpp.iterator and served.elementwise and floats_only(function)) or optional or not tensors:
        return None
    if len(overload.returns) != 1 or len(tensors) != _tensor_inputs(served):
        return None
    boolean = any(isinstance(p.tensor.element, Fixed) for p in function.outs if p.tensor is not None)
    scalar = next((r.scalar_tensor for r in served.binding.routes if r.scalar_tensor is not None), None)
    common = f"{tensors[0]}.scalar_type()"
    listed = ", ".join(tensors)
    if overload.inplace:
        condition = _or_scalar(f"fast_output({listed})", tensors, scalar)
        tried = TryView(setup=(), call=_called(call, (), common), result=(_returned(served, ()),))
        return FastView(condition=condition, served=tried)
    given = _given_outs(served)
    if given:
        if boolean:
            return None
        tried = TryView(setup=(), call=_called(call, given, common), result=(_returned(served, given),))
        return FastView(condition=f"fast_output({given[0]}, {listed})", served=tried)
    allocation = f"at::Tensor out = new_like({tensors[0]}{', at::kBool' if boolean else ''});"
    tried = TryView(setup=(allocation,), call=_called(call, ("out",), common), result=("return out;",))
    return FastView(condition=_or_scalar(f"fast_inputs({listed})", tensors, scalar), served=tried)


def _tensor_inputs(served: Served) -> int:
    return sum(1 for p in served.main.params if p.tensor is not None and p.role in (Role.IN, Role.INOUT))


def _or_scalar(condition: str, tensors: list[str], scalar: str | None) -> str:
    if scalar is None or len(tensors) != 2 or scalar != tensors[1]:
        return condition
    return f"{condition} || fast_scalar({tensors[0]}, {tensors[1]})"
