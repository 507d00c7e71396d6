"""Whether the element types of a composition's calls fit together, for every dtype that its caller may choose."""

from collections.abc import Iterator
from itertools import product

from diopigen.model.compose import Temporary
from diopigen.model.composition import Action, Branch, Fill, Passed, StepCall
from diopigen.model.expr import Name
from diopigen.model.op import Function, Param, Role
from diopigen.model.type import Element, Var, variables_of
from diopigen.passes.composition.match_call import Contract
from diopigen.passes.contract.elements import Environment, fixed, resolve
from diopigen.passes.contract.ranges import computes_with, constant
from diopigen.passes.contract.verify_kernels import Finding
from diopigen.vocabulary.dtype import DType, DTypes, Kind


def element_findings(
    function: Function, contract: Contract, actions: tuple[Action, ...], dtypes: DTypes
) -> Iterator[Finding]:
    """One finding for each argument of a call that can have a dtype which the called function does not take there."""
    types: dict[str, Element] = {p.name: p.tensor.element for p in function.params if p.tensor is not None}
    types |= {t.name: t.type.element for t in _temporaries(actions)}
    calls = tuple(_calls(actions))
    found: dict[str, Finding] = {}
    for chosen in _choices(function):
        known = {name: fixed(resolve(element, chosen, dtypes), dtypes) for name, element in types.items()}
        for call in calls:
            callee = contract.functions[call.symbol]
            for fill, dtype in _beyond(call, known):
                message = f"{fill.value} is out of range for {dtype.name}, the dtype of '{fill.like}'"
                finding = Finding(
                    code="out-of-range", message=message, span=call.span, hint="write a number that it holds"
                )
                found.setdefault(f"{call.span}.{fill}", finding)
            for param, dtype, wanted in _misfits(call, callee, known, dtypes):
                message = f"'{param.name}' of '{call.symbol}' takes {wanted}, not {dtype.name}"
                where = ", ".join(
                    f"{name} is {value.name}" for name, value in chosen.items() if isinstance(value, DType)
                )
                key = f"{call.span}.{param.name}"
                hint = f"so it is where {where}" if where else None
                found.setdefault(key, Finding(code="wrong-element", message=message, span=call.span, hint=hint))
    yield from found.values()


def _beyond(call: StepCall, known: dict[str, DType]) -> Iterator[tuple[Fill, DType]]:
    """Numbers in the place of tensors that the tensors' dtype does not hold."""
    for _, passed in call.args:
        if isinstance(passed, Fill) and passed.like in known:
            value, dtype = constant(passed.value), known[passed.like]
            if value is not None and dtype.kind is not Kind.BOOL and not computes_with(dtype, value):
                yield passed, dtype


def _choices(function: Function) -> Iterator[Environment]:
    elements = (p.tensor.element for p in function.params if p.tensor is not None)
    variables = {element.name for element in elements if isinstance(element, Var)}
    sets = [(name, members.members) for name, members in function.elements if name in variables]
    for values in product(*(members for _, members in sets)):
        yield {name: value for (name, _), value in zip(sets, values, strict=True)}


def _misfits(
    call: StepCall, callee: Function, known: dict[str, DType], dtypes: DTypes
) -> Iterator[tuple[Param, DType, str]]:
    """The parameters that get another dtype than they take, with what they take."""
    sets = dict(callee.elements)
    bound: Environment = {}
    pairs = [(p, p.tensor, _dtype(a, known)) for p, a in call.args if p.tensor is not None]
    given = [(p, t, d) for p, t, d in pairs if d is not None]
    given.sort(key=lambda pair: pair[0].role is not Role.IN and pair[0].role is not Role.INOUT)
    for param, type_, dtype in given:
        element = type_.element
        if isinstance(element, Var):
            members = sets[element.name]
            if dtype not in members.members:
                yield param, dtype, str(members)
            elif bound.setdefault(element.name, dtype) != dtype:
                value = bound[element.name]
                assert isinstance(value, DType)
                yield param, dtype, f"{value.name} as the others"
        else:
            wanted = fixed(resolve(element, bound, dtypes), dtypes)
            if wanted != dtype:
                yield param, dtype, wanted.name


def _dtype(passed: Passed, known: dict[str, DType]) -> DType | None:
    if isinstance(passed, Fill):
        return known.get(passed.like)
    if isinstance(passed, tuple):
        return _dtype(passed[0], known) if passed else None
    return known.get(passed.name) if isinstance(passed, Name) else None


def untold(element: Element, function: Function) -> str | None:
    """A variable of `element` that no single tensor which is always there tells, or None."""
    tensors = (p.tensor for p in function.params if p.tensor is not None)
    told = [t.element for t in tensors if not t.optional and t.count is None]
    return next((name for name in variables_of(element) if Var(name=name) not in told), None)


def _temporaries(actions: tuple[Action, ...]) -> Iterator[Temporary]:
    for action in actions:
        if isinstance(action, Temporary):
            yield action
        elif isinstance(action, Branch):
            yield from _temporaries((*action.then, *action.otherwise))


def _calls(actions: tuple[Action, ...]) -> Iterator[StepCall]:
    for action in actions:
        if isinstance(action, StepCall):
            yield action
        elif isinstance(action, Branch):
            yield from _calls((*action.then, *action.otherwise))
