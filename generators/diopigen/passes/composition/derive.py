"""The ways to compose a function: the written one, and those that follow from its kernel and from its other forms."""

from collections.abc import Iterator

from diopigen.diagnostics import Diagnostics
from diopigen.kept import KeptTexts
from diopigen.model.compose import Argument, Choice, Statement, Step, Temporary
from diopigen.model.composition import Composition, Source
from diopigen.model.expr import Expr, Name
from diopigen.model.op import Form, Function, Param, Role
from diopigen.model.program import Program
from diopigen.model.reserved import free_name
from diopigen.model.type import Element, FloatOf, Promote, ShapeName, TensorType, ValueType
from diopigen.passes.composition.compose import Composer
from diopigen.passes.composition.elements import untold
from diopigen.passes.composition.kernel import kernel_statements
from diopigen.passes.composition.match_call import Contract, contract_of
from diopigen.vocabulary.dtype import DTypes

_INPLACE = {Form.INPLACE: Form.OUT, Form.INPLACE_SCALAR: Form.SCALAR}
_SCALAR = {Form.SCALAR: Form.OUT, Form.INPLACE_SCALAR: Form.INPLACE}
_OUT = {Form.OUT: Form.INPLACE, Form.SCALAR: Form.INPLACE_SCALAR}


def check_compositions(program: Program, diagnostics: Diagnostics, kept: KeptTexts | None = None) -> None:
    """Reports what is wrong with the written compositions; one that `kept` knows to be sound is not composed again."""
    contract = contract_of(program.functions)
    ops = {op.name: op for op in program.ops}
    ground = KeptTexts.key(program.dtypes)
    for function in program.functions:
        if not function.compose:
            continue
        parts = (part for step in _steps(function.compose) for part in contract.named(step.callee))
        key = KeptTexts.key(ground, [(f.symbol, ops[f.op].digest) for f in (function, *parts)])
        if kept is not None and kept.found(key) is not None:
            continue
        path = "backward.compose" if function.form is Form.BACKWARD else "compose"
        span = ops[function.op].place(f"{path}:").span
        composer = Composer(function, contract, program.dtypes)
        composer.compose(function.compose, Source.WRITTEN, span)
        for finding in composer.findings:
            diagnostics.error(finding.code, finding.message, finding.span, finding.hint, about=finding.about)
        if kept is not None and not composer.findings:
            kept.keep(key, "")


def _steps(statements: tuple[Statement, ...]) -> Iterator[Step]:
    for statement in statements:
        if isinstance(statement, Step):
            yield statement
        elif isinstance(statement, Choice):
            yield from _steps((*statement.then, *statement.otherwise))


def compositions(function: Function, contract: Contract, dtypes: DTypes) -> Iterator[Composition]:
    """Every way to compose `function`, best first."""
    for source, statements in _statements(function, contract, dtypes):
        found = Composer(function, contract, dtypes).compose(statements, source, function.span)
        if found is not None:
            yield found


def _statements(
    function: Function, contract: Contract, dtypes: DTypes
) -> Iterator[tuple[Source, tuple[Statement, ...]]]:
    siblings = {f.form: f for f in contract.ops[function.op]}
    if function.compose:
        yield Source.WRITTEN, function.compose
    kernel = kernel_statements(function, dtypes)
    if kernel is not None:
        yield Source.KERNEL, kernel
    tensor = siblings.get(_SCALAR.get(function.form, function.form))
    if tensor is not None and tensor is not function:
        yield Source.SCALAR, _filled(function, tensor)
    out = siblings.get(_INPLACE.get(function.form, function.form))
    if out is not None and out is not function:
        yield from _copied_back(function, out)
    inplace = siblings.get(_OUT.get(function.form, function.form))
    if inplace is not None and inplace is not function:
        yield from _changed_copy(function, inplace)


def _filled(function: Function, tensor: Function) -> tuple[Statement, ...]:
    """The form with a tensor, given a number; where the number may be absent, once with and once without."""
    optional = [p for p in function.params if isinstance(p.type, ValueType) and p.type.optional]
    numbers = [p.name for p in optional if (other := tensor.param(p.name)) is not None and other.tensor is not None]
    return _for_each_absence(function, tensor, numbers, ())


def _for_each_absence(
    function: Function, tensor: Function, numbers: list[str], absent: tuple[str, ...]
) -> tuple[Statement, ...]:
    if not numbers:
        names = {p.name: Name(name="null" if p.name in absent else p.name) for p in tensor.params}
        return (_step(function, tensor.symbol, dict(names)),)
    first, *others = numbers
    return (
        Choice(
            condition=Name(name=first),
            then=_for_each_absence(function, tensor, others, absent),
            otherwise=_for_each_absence(function, tensor, others, (*absent, first)),
            span=function.span,
        ),
    )


def _copied_back(function: Function, out: Function) -> Iterator[tuple[Source, tuple[Statement, ...]]]:
    """The form with an output into a temporary, which is then copied to the tensor that is written in place."""
    written = _only(p for p in function.params if p.role is Role.INOUT)
    output = _only(p for p in out.params if p.role is Role.OUT)
    if written is None or output is None:
        return
    result = _temporary(function, output, written.name)
    args: dict[str, Expr] = {p.name: Name(name=result.name if p is output else p.name) for p in out.params}
    copy = _step(function, "diopiCopyInp", {"src": Name(name=result.name), "dest": Name(name=written.name)})
    yield Source.INPLACE, (result, _step(function, out.symbol, args), copy)


def _changed_copy(function: Function, inplace: Function) -> Iterator[tuple[Source, tuple[Statement, ...]]]:
    """A copy of the first tensor, changed in place, and copied to the output."""
    output = _only(p for p in function.params if p.role is Role.OUT)
    written = _only(p for p in inplace.params if p.role is Role.INOUT)
    if output is None or written is None or not _keeps_values(written, output):
        return
    result = _temporary(function, output, output.name)
    args: dict[str, Expr] = {p.name: Name(name=result.name if p is written else p.name) for p in inplace.params}
    fill = _step(function, "diopiCopyInp", {"src": Name(name=written.name), "dest": Name(name=result.name)})
    copy = _step(function, "diopiCopyInp", {"src": Name(name=result.name), "dest": Name(name=output.name)})
    yield Source.OUT, (result, fill, _step(function, inplace.symbol, args), copy)


def _keeps_values(written: Param, output: Param) -> bool:
    """Whether the output's dtype holds what is copied into it before it is changed."""
    assert written.tensor is not None and output.tensor is not None
    own, given = written.tensor.element, output.tensor.element
    return given == own or (isinstance(given, Promote) and own in given.elements)


def _only(params: Iterator[Param]) -> Param | None:
    """The one single tensor among `params`, or None."""
    found = list(params)
    single = len(found) == 1 and found[0].tensor is not None and found[0].tensor.count is None
    return found[0] if single and not found[0].type.optional else None


def _temporary(function: Function, output: Param, shape: str) -> Temporary:
    assert output.tensor is not None
    name = free_name("result", {*(p.name for p in function.params), *function.counts})
    type_ = TensorType(element=_told(output.tensor.element, function))
    return Temporary(name=name, type=type_, shape=ShapeName(name=shape), span=function.span)


def _told(element: Element, function: Function) -> Element:
    """`element` without the variables that only a number could tell."""
    match element:
        case Promote():
            parts = tuple(part for part in element.elements if untold(part, function) is None)
            return parts[0] if len(parts) == 1 else Promote(elements=parts) if parts else element
        case FloatOf():
            return FloatOf(element=_told(element.element, function))
        case _:
            return element


def _step(function: Function, callee: str, args: dict[str, Expr]) -> Step:
    span = function.span
    return Step(
        callee=callee,
        args=tuple(Argument(name=name, value=value, span=span) for name, value in args.items()),
        span=span,
    )
