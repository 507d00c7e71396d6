"""Finds the function that a call of a composition means, and what stands for each of its parameters."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from diopigen.model.compose import Argument, Operand, Step
from diopigen.model.composition import Absent, Fill, Passed, StepCall
from diopigen.model.expr import Name, Number, Text, names
from diopigen.model.op import Form, Function, Literal, Param, Role
from diopigen.model.type import ENUMERATORS, NUMBERS, Fixed, TensorType, Value, ValueType
from diopigen.passes.composition.scope import NULL, TRUTHS, Scope
from diopigen.passes.contract.ranges import constant, value_holds
from diopigen.passes.contract.verify_kernels import Finding
from diopigen.text import suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """Every function, by symbol and by op."""

    functions: dict[str, Function]
    ops: dict[str, tuple[Function, ...]]

    def named(self, word: str) -> tuple[Function, ...]:
        """The functions that a call of `word` can mean."""
        if word in self.functions:
            return (self.functions[word],)
        of_op = self.ops.get(word, ())
        plain = tuple(f for f in of_op if f.form in (Form.OUT, Form.SCALAR))
        return plain or tuple(f for f in of_op if f.form is not Form.BACKWARD)


def contract_of(functions: tuple[Function, ...]) -> Contract:
    ops: dict[str, tuple[Function, ...]] = {}
    for function in functions:
        ops[function.op] = (*ops.get(function.op, ()), function)
    return Contract(functions={f.symbol: f for f in functions}, ops=ops)


def match_call(step: Step, scope: Scope, contract: Contract) -> tuple[StepCall | None, tuple[Finding, ...]]:
    """The call, or None with what is wrong; of several forms the one that suits best."""
    candidates = contract.named(step.callee)
    if not candidates:
        known = (*contract.ops, *contract.functions)
        hint = suggestion(step.callee, known) or "name an op, or a function of the contract"
        message = f"there is no op or function '{step.callee}'"
        unknown = Finding(code="unknown-function", message=message, span=step.span, hint=hint, about=(step.callee,))
        return None, (unknown,)
    matches = [_match(step, function, scope) for function in candidates]
    matches.sort(key=lambda match: (len(match[1]), sum(isinstance(passed, Fill) for _, passed in match[0].args)))
    call, findings = matches[0]
    return (None if findings else call), tuple(replace(finding, about=(step.callee,)) for finding in findings)


def _match(step: Step, function: Function, scope: Scope) -> tuple[StepCall, tuple[Finding, ...]]:
    given, findings = _placed(step, function)
    findings += _spelled_otherwise(step, function, scope)
    args: list[tuple[Param, Passed]] = []
    for param in function.params:
        if param.name in given:
            passed, wrong = _passed(param, given[param.name], function, scope)
            findings += wrong
        else:
            default = _default(param)
            if default is None:
                findings.append(_arity(step, function, f"lacks '{param.name}'"))
            passed = Absent() if default is None else default
        args.append((param, passed))
    found = [(param, _filled(param, passed, args)) for param, passed in args]
    if any(isinstance(passed, Fill) and not passed.like for _, passed in found):
        findings.append(_arity(step, function, "has no tensor that a number could take its dtype from"))
    return StepCall(symbol=function.symbol, args=tuple(found), span=step.span), tuple(findings)


def _placed(step: Step, function: Function) -> tuple[dict[str, Argument], list[Finding]]:
    """The arguments by parameter."""
    names = [param.name for param in function.params]
    findings: list[Finding] = []
    given: dict[str, Argument] = {}
    plain = [arg for arg in step.args if arg.name is None]
    if len(plain) > len(names):
        findings.append(_arity(step, function, f"takes {len(names)} arguments, not {len(plain)}"))
    given.update(zip(names, plain, strict=False))
    for arg in step.args:
        if arg.name is None:
            continue
        if arg.name not in names:
            hint = suggestion(arg.name, names) or f"it has {', '.join(names)}"
            message = f"'{function.symbol}' has no argument '{arg.name}'"
            findings.append(Finding(code="unknown-arg", message=message, span=arg.span, hint=hint))
        elif arg.name in given:
            message = f"'{arg.name}' of '{function.symbol}' is given twice"
            findings.append(Finding(code="duplicate-name", message=message, span=arg.span, hint="remove one of them"))
        else:
            given[arg.name] = arg
    return given, findings


def _arity(step: Step, function: Function, what: str) -> Finding:
    order = ", ".join(param.name for param in function.params)
    message = f"the call of '{function.symbol}' {what}"
    return Finding(code="wrong-arity", message=message, span=step.span, hint=f"its arguments are {order}")


def _default(param: Param) -> Passed | None:
    """What an argument that is left out is; None where it may not be."""
    if not param.has_default:
        return Absent() if param.type.optional and param.role is Role.IN else None
    if param.default is None:
        return Absent()
    return _literal(param.default, param)


def _literal(value: Literal, param: Param) -> Operand:
    if isinstance(value, bool):
        return Name(name=str(value).lower())
    if isinstance(value, int | float):
        number = Number(text=repr(value))
        return (number,) if isinstance(param.type, ValueType) and param.type.many else number
    if isinstance(value, tuple):
        return tuple(Number(text=repr(item)) for item in value)
    if isinstance(param.type, ValueType) and param.type.value in ENUMERATORS:
        return Name(name=str(value))
    return Text(text=str(value))


def _passed(param: Param, arg: Argument, function: Function, scope: Scope) -> tuple[Passed, list[Finding]]:
    """What `arg` is for `param`."""
    operand = arg.value
    unknown = [name for name in operand_names(operand) if not _known(name, param, scope)]
    if unknown:
        hint = suggestion(unknown[0], scope.names) or f"there are {', '.join(scope.names)}"
        message = f"'{unknown[0]}' is not an argument, output or temporary of '{scope.function.symbol}'"
        return operand, [Finding(code="unknown-arg", message=message, span=arg.span, hint=hint)]
    if operand == Name(name=NULL):
        if param.type.optional or (isinstance(param.type, ValueType) and param.type.value is Value.GENERATOR):
            return Absent(), []
        return operand, [_wrong(param, function, arg, "cannot be absent")]
    if isinstance(param.type, TensorType):
        return _tensor(param, param.type, arg, function, scope)
    if _fits(param, param.type, operand, scope):
        return operand, list(_beyond(param, param.type, arg))
    return operand, [_wrong(param, function, arg, f"is of type {param.type}")]


def _beyond(param: Param, type_: ValueType, arg: Argument) -> Iterator[Finding]:
    """A finding for each constant that the argument's type does not hold."""
    kind = Value.INT if type_.many else type_.value
    operands = arg.value if isinstance(arg.value, tuple) else (arg.value,)
    plain = type_.length is not None and all(constant(operand) is not None for operand in operands)
    if plain and len(operands) != type_.length:
        message = f"'{param.name}' is '{type_}', and gets {len(operands)} numbers"
        yield Finding(code="wrong-argument", message=message, span=arg.span, hint=f"give {type_.length}")
    for operand in operands:
        value = constant(operand)
        if value is not None and not value_holds(kind, value):
            message = f"'{param.name}' is '{type_}', which cannot be {operand}"
            yield Finding(code="out-of-range", message=message, span=arg.span, hint="write a number of that type")


def _spelled_otherwise(step: Step, function: Function, scope: Scope) -> Iterator[Finding]:
    """Arguments whose C type is another one than their meaning has cannot be passed on."""
    passed = {name for arg in step.args for name in operand_names(arg.value)}
    own = [p for name in passed if (p := scope.param(name)) is not None]
    for param in (*function.params, *own):
        if not param.usual_in_c:
            message = f"'{param.name}' is a '{param.c}' in C, which a composition cannot pass on"
            hint = "implement the function another way"
            yield Finding(code="wrong-argument", message=message, span=step.span, hint=hint)


def _wrong(param: Param, function: Function, arg: Argument, what: str) -> Finding:
    message = f"'{param.name}' of '{function.symbol}' {what}"
    return Finding(code="wrong-argument", message=message, span=arg.span, hint=f"it is '{param.type}'")


def operand_names(operand: Operand) -> tuple[str, ...]:
    if isinstance(operand, tuple):
        return tuple(name for item in operand for name in operand_names(item))
    return names(operand)


def _known(name: str, param: Param, scope: Scope) -> bool:
    words: tuple[str, ...] = (NULL, *TRUTHS)
    if isinstance(param.type, ValueType):
        words += tuple(ENUMERATORS.get(param.type.value, {}))
    return scope.knows(name) or name in words


def _tensor(
    param: Param, type_: TensorType, arg: Argument, function: Function, scope: Scope
) -> tuple[Passed, list[Finding]]:
    operand = arg.value
    found = scope.tensor(operand)
    if type_.count is not None:
        listed = isinstance(operand, tuple) and all(_single(item, scope) for item in operand)
        if listed or (found is not None and found.count is not None):
            return operand, []
        return operand, [_wrong(param, function, arg, "is a list of tensors")]
    if found is not None and found.count is None:
        return operand, []
    if param.role is Role.IN and scope.number(operand):
        assert not isinstance(operand, tuple)
        return Fill(value=operand, like="", widened=False), []
    return operand, [_wrong(param, function, arg, "is a tensor")]


def _single(operand: Operand, scope: Scope) -> bool:
    found = scope.tensor(operand)
    return found is not None and found.count is None


def _fits(param: Param, type_: ValueType, operand: Operand, scope: Scope) -> bool:
    given = scope.value(operand)
    same = given is not None and (given.value, given.many) == (type_.value, type_.many)
    if param.role is not Role.IN:
        return same
    if type_.many:
        return scope.lengths(operand) if type_.value in (Value.INT, Value.DIM) else same
    match type_.value:
        case Value.STR:
            return same or (isinstance(operand, Text) and (not type_.words or operand.text in type_.words))
        case Value.BOOL:
            return not isinstance(operand, tuple) and scope.condition(operand)
        case Value.REDUCTION | Value.ROUND_MODE | Value.MEMORY_FORMAT:
            return same or (isinstance(operand, Name) and scope.word(operand, type_))
        case Value.GENERATOR | Value.POINTER:
            return same
        case value:
            return value in NUMBERS and scope.number(operand)


def _filled(param: Param, passed: Passed, args: list[tuple[Param, Passed]]) -> Passed:
    """A number in the place of a tensor takes its dtype from a tensor of the same variable, else from any beside it."""
    if not isinstance(passed, Fill):
        return passed
    assert param.tensor is not None
    beside = [
        (p.tensor.element, a.name)
        for p, a in args
        if p.tensor is not None and p.tensor.count is None and p.role is not Role.OUT and isinstance(a, Name)
    ]
    same = next((name for element, name in beside if element == param.tensor.element), None)
    if same is not None:
        return replace(passed, like=same)
    values = [name for element, name in beside if not isinstance(element, Fixed)]
    return replace(passed, like=values[0], widened=True) if values else passed
