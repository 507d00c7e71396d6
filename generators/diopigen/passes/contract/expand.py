"""Derives the C functions of every op: names, order, roles; checks that overrides name what there is."""

from collections.abc import Iterable
from dataclasses import replace

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.op import Arg, Form, Function, Op, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import TensorType, Value, ValueType, Var
from diopigen.text import suggestion
from diopigen.vocabulary.dtype import DTypeSet, Kind

_BACKWARD = "Backward"
_SUFFIX = {Form.OUT: "", Form.INPLACE: "Inp", Form.SCALAR: "Scalar", Form.INPLACE_SCALAR: "InpScalar"}


def names_of(op: str, words: str, stems: Iterable[str] = ()) -> frozenset[str]:
    """The op, and the symbols of all the functions that it may have; `stems` are those that break the rule."""
    own = (words + suffix for suffix in (*_SUFFIX.values(), _BACKWARD))
    return frozenset((op, *(f"diopi{stem}" for stem in (*own, *filter(None, stems)))))


def expand(program: Program, diagnostics: Diagnostics) -> Program:
    """Fills `functions`; an op with an error is dropped with its functions, the others go on."""
    ops: list[Op] = []
    functions: list[Function] = []
    first: dict[str, Span] = {}
    for op in program.ops:
        found = Diagnostics()
        of_op = _functions(op, found)
        for function in of_op:
            if function.symbol in first:
                found.error(
                    "duplicate-function",
                    f"'{function.symbol}' is declared twice",
                    function.span,
                    "give one of them another name with 'name' or 'names'",
                    (("the first is here", first[function.symbol]),),
                )
            first.setdefault(function.symbol, function.span)
        diagnostics.add(*found.found)
        if not found.failed:
            ops.append(op)
            functions.extend(of_op)
    return replace(program, ops=tuple(ops), functions=tuple(functions))


def _functions(op: Op, diagnostics: Diagnostics) -> list[Function]:
    forms = list(op.forms)
    if any(arg.scalar for arg in op.args):
        forms += [Form.SCALAR] if Form.OUT in op.forms else []
        forms += [Form.INPLACE_SCALAR] if Form.INPLACE in op.forms else []
    named = dict(op.symbols)
    for form in named:
        if form not in forms:
            diagnostics.error(
                "unused-name",
                f"'{op.name}' has no {form.value} form to name",
                op.place(f"names.{form.value}:").span,
                "list it under 'variants', or give an argument '| Scalar'",
            )
    functions = [
        _forward(op, form, named.get(form, op.words + _SUFFIX[form]), diagnostics)
        for form in forms
        if named.get(form) != ""
    ]
    if op.backward is not None:
        functions.append(_backward(op, diagnostics))
    return functions


def _forward(op: Op, form: Form, stem: str, diagnostics: Diagnostics) -> Function:
    outs = [] if form.inplace else [_param(out) for out in op.outs]
    args = [_scalar_param(arg) if form.scalar and arg.scalar else _param(arg) for arg in op.args]
    if form.inplace:
        args = _first_tensor_inout(op, args, diagnostics)
    # An order is given for the main form; the others leave out what they do not have.
    order = None if op.order is None else tuple(n for n in op.order if n in {p.name for p in (*outs, *args)})
    _check_names(op, op.order or (), [*op.outs, *op.args], "order", diagnostics)
    _check_names(op, (n for n, _ in op.c), [*op.outs, *op.args], "c", diagnostics)
    return Function(
        symbol=f"diopi{stem}",
        op=op.name,
        form=form,
        header=op.header,
        doc=op.doc,
        math=op.math,
        params=_spelled(_ordered([*outs, *args], order, op, op.place("order").span, diagnostics), op.c),
        kernel=op.kernel,
        elements=op.where,
        span=op.span,
        deprecated=op.deprecated,
        compose=op.compose if form is op.forms[0] else (),
    )


def _first_tensor_inout(op: Op, params: list[Param], diagnostics: Diagnostics) -> list[Param]:
    for index, param in enumerate(params):
        if param.tensor is not None:
            return [*params[:index], replace(param, role=Role.INOUT), *params[index + 1 :]]
    diagnostics.error("no-tensor", f"'{op.name}' has no tensor to write in place", op.span)
    return params


def _backward(op: Op, diagnostics: Diagnostics) -> Function:
    block = op.backward
    assert block is not None
    args = {arg.name: arg for arg in op.args}
    outs = {out.name: out for out in op.outs}
    _check_names(op, (g for g, _ in block.grads), op.args, "backward.grads", diagnostics)
    _check_names(op, (o for _, o in block.grad_outputs), op.outs, "backward.grad_outputs", diagnostics)
    _check_names(op, block.attrs or (), op.args, "backward.attrs", diagnostics)
    for name, of in op.where:
        if not _floats(of, name, [_grad(args[g], False) for g, _ in block.grads if g in args]).members:
            diagnostics.error(
                "no-gradient",
                f"'{op.name}' has gradients, but '{name}' has no floats",
                op.place(f"where.{name}:").span,
                "remove 'backward', or add floats",
            )
    grads = [_grad(args[name], optional) for name, optional in block.grads if name in args]
    incoming = [_incoming(param, outs[out]) for param, out in block.grad_outputs if out in outs]
    keeps = [
        Param(
            name=keep.name,
            arg=keep.source or keep.name,
            type=keep.type,
            role=Role.IN,
            default=None,
            has_default=False,
            shape=None,
            c=None,
            span=keep.span,
        )
        for keep in block.keeps
    ]
    kept = {keep.source or keep.name for keep in block.keeps}
    wanted = (
        [arg for arg in op.args if isinstance(arg.type, ValueType) and arg.type.value is not Value.GENERATOR]
        if block.attrs is None
        else [args[name] for name in block.attrs if name in args]
    )
    attrs = [_param(arg) for arg in wanted if arg.name not in kept]
    params = [*grads, *incoming, *keeps, *attrs]
    return Function(
        symbol=f"diopi{block.name or op.words + _BACKWARD}",
        op=op.name,
        form=Form.BACKWARD,
        header=op.header,
        doc=f"The gradient of {op.name}: {op.doc}",
        math=block.math,
        params=_spelled(_ordered(params, block.order, op, op.place("backward.order").span, diagnostics), block.c),
        kernel=block.kernel,
        elements=tuple((name, _floats(of, name, grads)) for name, of in op.where),
        span=block.span,
        deprecated=op.deprecated,
        compose=block.compose,
    )


def _floats(members: DTypeSet, variable: str, grads: list[Param]) -> DTypeSet:
    """Only floats have gradients: what the variable of a tensor with a gradient may be."""
    if Var(name=variable) not in [grad.tensor.element for grad in grads if grad.tensor is not None]:
        return members
    floats = tuple(t for t in members.members if t.kind in (Kind.FLOAT, Kind.COMPLEX))
    return members if floats == members.members else DTypeSet(name=f"floats of {members.name}", members=floats)


def _param(arg: Arg) -> Param:
    return Param(
        name=arg.name,
        arg=arg.name,
        type=arg.type,
        role=arg.role,
        default=arg.default,
        has_default=arg.has_default,
        shape=arg.shape,
        c=None,
        span=arg.span,
    )


def _scalar_param(arg: Arg) -> Param:
    optional = isinstance(arg.type, TensorType) and arg.type.optional
    return replace(_param(arg), type=ValueType(value=Value.SCALAR, optional=optional))


def _grad(arg: Arg, optional: bool) -> Param:
    assert isinstance(arg.type, TensorType)
    return replace(
        _param(arg),
        name=f"grad_{arg.name}",
        arg=f"grad_{arg.name}",
        type=replace(arg.type, optional=optional),
        role=Role.OUT,
        shape=None,
        default=None,
        has_default=False,
    )


def _incoming(name: str, out: Arg) -> Param:
    return replace(_param(out), name=name, arg=f"grad_{out.name}", role=Role.IN, shape=None)


def _ordered(
    params: list[Param], order: tuple[str, ...] | None, op: Op, span: Span, diagnostics: Diagnostics
) -> tuple[Param, ...]:
    if order is None:
        return tuple(params)
    by_name = {param.name: param for param in params}
    absent = [name for name in by_name if name not in order]
    unknown = [name for name in order if name not in by_name]
    for name in absent:
        diagnostics.error(
            "order-incomplete", f"'order' of '{op.name}' leaves out '{name}'", span, "list every parameter"
        )
    for name in unknown:
        hint = suggestion(name, by_name)
        diagnostics.error("unknown-arg", f"'order' of '{op.name}' names '{name}', which it does not have", span, hint)
    return tuple(by_name[name] for name in order if name in by_name)


def _spelled(params: tuple[Param, ...], c: tuple[tuple[str, str], ...]) -> tuple[Param, ...]:
    spellings = dict(c)
    return tuple(replace(p, c=spellings[p.name]) if p.name in spellings else p for p in params)


def _check_names(op: Op, names: Iterable[str], known: Iterable[Arg], path: str, diagnostics: Diagnostics) -> None:
    words = [arg.name for arg in known]
    for name in names:
        if name not in words:
            place = op.places.at(f"{path}.{name}:") or op.place(f"{path}.{name}")
            diagnostics.error(
                "unknown-arg",
                f"'{path.rpartition('.')[2]}' of '{op.name}' names '{name}', which it does not have",
                place.word(name),
                suggestion(name, words) or f"it has {', '.join(words)}",
            )
