"""Turns the statements of a composition into calls, and checks what they write and read."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from diopigen.diagnostics import Span
from diopigen.model.compose import Choice, Statement, Step, Temporary
from diopigen.model.composition import Absent, Action, Branch, Composition, Fill, Passed, Source, StepCall
from diopigen.model.expr import Binary, Call, Expr, Name, Unary, names
from diopigen.model.op import Function, Param, Role
from diopigen.model.type import Length, ShapeArithmetic, ShapeCall, ShapeName, Value, negative_lengths, parts
from diopigen.passes.composition.elements import element_findings, untold
from diopigen.passes.composition.match_call import Contract, match_call, operand_names
from diopigen.passes.composition.scope import TRUTHS, Scope
from diopigen.passes.contract.check_names import reserved_name
from diopigen.passes.contract.verify_kernels import Finding
from diopigen.text import suggestion
from diopigen.vocabulary.dtype import DTypes

# The shapes of temporaries, with what their arguments are: (t)ensors, (n)umbers, lists or (l)engths, (b)ools. The last
# is repeated after "+", and may be left out after "?". runtime_cpp/composite/steps.h has them.
SHAPES = {
    "broadcast": "t+",
    "reduced": "tlb?",
    "scalar": "",
    "shape": "l+",
    "with_size": "tnn",
    "unsqueezed": "tn",
    "transposed": "tnn",
}
_LENGTHS = {"size": "tn", "numel": "t", "last": "m", "dims_from": "tn", "others": "tl+"}
_MOST = 8  # arguments of a rule that takes any number of them
_KINDS = {"t": "a tensor", "n": "a number", "l": "a whole number or a list of them", "m": "a list", "b": "a bool"}

# In place, yet what was there before is not read: they write all of the tensor.
FILLING = ("diopiCopyInp", "diopiFill", "diopiZeroInp")


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known where a statement stands."""

    present: frozenset[str] = frozenset()  # optional arguments that the caller gave
    absent: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()  # the caller's tensors that were written


@dataclass(slots=True)
class Composer:
    """Composes one function."""

    function: Function
    contract: Contract
    dtypes: DTypes
    scope: Scope = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    declared: dict[str, Temporary] = field(default_factory=dict)  # all temporaries, those of branches included
    read: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)  # the caller's tensors that some call writes

    def __post_init__(self) -> None:
        self.scope = Scope(self.function)

    def compose(self, statements: tuple[Statement, ...], source: Source, span: Span) -> Composition | None:
        """The composition, or None; `findings` then say why."""
        start = frozenset(p.name for p in self.function.params if p.role in (Role.IN, Role.INOUT))
        actions, facts = self._block(statements, Facts(written=start))
        if not self.findings:
            self._all_is_written(facts, span)
            self._all_is_used()
            self.findings += element_findings(self.function, self.contract, actions, self.dtypes)
        if self.findings:
            return None
        return Composition(symbol=self.function.symbol, source=source, actions=actions)

    # -- statements -----------------------------------------------------------------------------------------

    def _block(self, statements: tuple[Statement, ...], facts: Facts) -> tuple[tuple[Action, ...], Facts]:
        actions: list[Action] = []
        for statement in statements:
            match statement:
                case Temporary():
                    self._declare(statement)
                    actions.append(statement)
                case Step():
                    call, facts = self._step(statement, facts)
                    actions += [] if call is None else [call]
                case Choice():
                    branch, facts = self._choice(statement, facts)
                    actions.append(branch)
        return tuple(actions), facts

    def _declare(self, temporary: Temporary) -> None:
        if self.scope.knows(temporary.name) or temporary.name in (*self.declared, *self.function.counts):
            self._find(
                code="duplicate-name",
                message=f"'{temporary.name}' is already taken",
                span=temporary.span,
                hint="rename the temporary",
            )
        self.findings += reserved_name(temporary.name, temporary.span)
        variable = untold(temporary.type.element, self.function)
        if variable is not None:
            self._find(
                code="unbound-variable",
                message=f"no tensor of '{self.function.symbol}' determines '{variable}'",
                span=temporary.span,
                hint="name a variable of a tensor that is never absent",
            )
        self._shape(temporary)
        self.scope.temporaries[temporary.name] = temporary
        self.declared[temporary.name] = temporary

    def _shape(self, temporary: Temporary) -> None:
        for part in parts(temporary.shape):
            match part:
                case ShapeName(name=name) if not self.scope.knows(name) and name not in TRUTHS:
                    hint = suggestion(name, self.scope.names) or f"there are {', '.join(self.scope.names)}"
                    message = f"the shape of '{temporary.name}' names '{name}', which does not exist"
                    self._find(code="unknown-arg", message=message, span=temporary.span, hint=hint)
                case ShapeCall(rule=rule) if rule not in SHAPES and rule not in _LENGTHS:
                    hint = suggestion(rule, SHAPES) or f"a temporary may use {', '.join(SHAPES)}"
                    message = f"there is no shape rule '{rule}'"
                    self._find(code="unknown-shape", message=message, span=temporary.span, hint=hint)
                case ShapeCall():
                    self._shape_args(temporary, part)
                case _:
                    pass
        for length in negative_lengths(temporary.shape):
            message = f"the shape of '{temporary.name}' has the length {length}"
            self._find(code="out-of-range", message=message, span=temporary.span, hint="write a size of 0 or more")
        shape = temporary.shape
        if shape.rule in _LENGTHS if isinstance(shape, ShapeCall) else self.scope.knows(shape.name):
            self._is(temporary, shape, "s")

    def _shape_args(self, temporary: Temporary, call: ShapeCall) -> None:
        """Whether a rule is given as many arguments as it takes, and of their kinds."""
        kinds = SHAPES.get(call.rule, _LENGTHS.get(call.rule, ""))
        letters = kinds.rstrip("+?")
        low = len(letters) - (1 if kinds.endswith("?") else 0)
        high = _MOST if kinds.endswith("+") else len(letters)
        if not low <= len(call.args) <= high:
            counts = f"{low}" if low == high else f"{low} to {high}"
            message = f"'{call.rule}' takes {counts} arguments, not {len(call.args)}"
            self._find(code="wrong-arity", message=message, span=temporary.span, hint=None)
            return
        for arg, kind in zip(call.args, letters + letters[-1:] * len(call.args), strict=False):
            self._is(temporary, arg, kind)

    def _is(self, temporary: Temporary, arg: Length, kind: str) -> None:
        """Reports an argument of a shape rule that is of another kind; "s" is a shape itself."""
        if not self._suits(arg, kind):
            what = _KINDS.get(kind, "a tensor or a rule")
            message = f"'{arg}' in the shape of '{temporary.name}' is not {what}"
            self._find(
                code="wrong-argument", message=message, span=temporary.span, hint=f"write {what} that is never absent"
            )

    def _suits(self, arg: Length, kind: str) -> bool:
        match arg:
            case int():
                return kind in "nl"
            case ShapeArithmetic():
                return kind in "nl" and self._suits(arg.left, "n") and self._suits(arg.right, "n")
            case ShapeCall(rule=rule):
                return kind == ("s" if rule in SHAPES else "l") if rule not in ("size", "numel") else kind in "nl"
            case ShapeName(name=name):
                return self._named_suits(name, kind)

    def _named_suits(self, name: str, kind: str) -> bool:
        tensor, value, param = (
            self.scope.tensor(Name(name=name)),
            self.scope.value(Name(name=name)),
            self.scope.param(name),
        )
        if kind in "ts":
            return tensor is not None and tensor.count is None
        if kind == "b":
            return name in TRUTHS or (value is not None and value.value is Value.BOOL and not value.optional)
        if value is None or param is None or not param.usual_in_c:
            return False
        whole = value.value in (Value.INT, Value.DIM, Value.INT32)
        if value.many:
            return kind in "lm" and whole and not value.optional
        return whole and kind in "nl" and (kind == "l" or not value.optional)

    def _step(self, step: Step, facts: Facts) -> tuple[StepCall | None, Facts]:
        call, findings = match_call(step, self.scope, self.contract)
        self.findings += findings
        if call is None:  # whatever it names counts as read and written, so that nothing follows from the mistake
            named = {name for arg in step.args for name in operand_names(arg.value)}
            self.read |= named
            self.changed |= named
            return None, replace(facts, written=facts.written | named)
        if call.symbol == self.function.symbol:
            self._find(
                code="composed-of-itself",
                message=f"'{call.symbol}' cannot be composed of itself",
                span=step.span,
                hint="call another function",
            )
        for param, passed in call.args:
            for name in _tensors(passed, self.scope):
                self._use(step, call, param, name, facts)
            for name in _numbers(param, passed, self.scope):
                self._is_there(step, call, param, name, facts)
        written = {name for p, a in call.args if p.role is not Role.IN for name in _tensors(a, self.scope)}
        changed = {n for n in written if n not in self.scope.temporaries and self.scope.writable(n)}
        self.changed |= changed
        return call, replace(facts, written=facts.written | written, changed=facts.changed | changed)

    def _use(self, step: Step, call: StepCall, param: Param, name: str, facts: Facts) -> None:
        if not param.type.optional:
            self._is_there(step, call, param, name, facts)
        place = f"'{param.name}' of '{call.symbol}'"
        if param.role is not Role.IN and not self.scope.writable(name):
            self._find(
                code="read-only",
                message=f"{place} is written, but '{name}' is only read",
                span=step.span,
                hint="use a temporary",
            )
        if param.role is Role.IN or (param.role is Role.INOUT and call.symbol not in FILLING):
            self._read(step, name, facts)

    def _is_there(self, step: Step, call: StepCall, param: Param, name: str, facts: Facts) -> None:
        if self.scope.optional(name) and name not in facts.present:
            self._find(
                code="absent-argument",
                message=f"'{name}' may be absent, but '{param.name}' of '{call.symbol}' may not",
                span=step.span,
                hint=f"put the call under 'if {name}:'",
            )

    def _read(self, step: Step, name: str, facts: Facts) -> None:
        self.read.add(name)
        if name not in facts.written:
            self._find(
                code="read-before-write",
                message=f"'{name}' is read before it is written",
                span=step.span,
                hint="write it first",
            )
        param = self.scope.param(name)
        changed = sorted(facts.changed)
        if param is not None and param.role is Role.IN and changed:
            self._find(
                code="read-after-write",
                message=f"'{name}' is read after '{changed[0]}' was written, which may be the same tensor",
                span=step.span,
                hint=f"write a temporary, and '{changed[0]}' at the end",
            )

    # -- conditions -----------------------------------------------------------------------------------------

    def _choice(self, choice: Choice, facts: Facts) -> tuple[Branch, Facts]:
        if not self.scope.condition(choice.condition):
            unknown = [n for n in names(choice.condition) if not self.scope.knows(n) and n not in TRUTHS]
            hint = suggestion(unknown[0], self.scope.names) if unknown else None
            self._find(
                code="bad-condition",
                message=f"'{choice.condition}' cannot be evaluated before the call",
                span=choice.span,
                hint=hint or "compare numbers and strings, or name an optional argument",
            )
        yes, no = _told(choice.condition, True, self.scope), _told(choice.condition, False, self.scope)
        then, after = self._inner(choice.then, _with(facts, *yes))
        otherwise, other = self._inner(choice.otherwise, _with(facts, *no))
        written = (after.written | after.absent) & (other.written | other.absent)
        branch = Branch(condition=choice.condition, then=then, otherwise=otherwise)
        changed = facts.changed | after.changed | other.changed
        return branch, replace(facts, written=facts.written | written, changed=changed)

    def _inner(self, statements: tuple[Statement, ...], facts: Facts) -> tuple[tuple[Action, ...], Facts]:
        """A block whose temporaries end with it."""
        outer = dict(self.scope.temporaries)
        found = self._block(statements, facts)
        self.scope.temporaries = outer
        return found

    # -- the whole ------------------------------------------------------------------------------------------

    def _all_is_written(self, facts: Facts, span: Span) -> None:
        for param in self.function.params:
            if param.role is not Role.IN and param.name not in facts.written:
                self._find(
                    code="not-written",
                    message=f"'{param.name}' is not written on every path",
                    span=span,
                    hint="write it in each branch",
                )
            if param.role is Role.INOUT and param.tensor is not None and param.name not in self.changed:
                self._find(code="not-written", message=f"'{param.name}' is not written", span=span, hint="write it")

    def _all_is_used(self) -> None:
        for temporary in self.declared.values():
            if temporary.name not in self.read:
                message = f"the temporary '{temporary.name}' is never read"
                self._find(code="unused-temporary", message=message, span=temporary.span, hint="remove it")

    def _find(self, *, code: str, message: str, span: Span, hint: str | None) -> None:
        finding = Finding(code=code, message=message, span=span, hint=hint)
        if finding not in self.findings:
            self.findings.append(finding)


def _with(facts: Facts, present: frozenset[str], absent: frozenset[str]) -> Facts:
    return replace(facts, present=facts.present | present, absent=facts.absent | absent)


_Told = tuple[frozenset[str], frozenset[str]]


def _told(condition: Expr, truth: bool, scope: Scope) -> _Told:
    """Which optional arguments are present, and which absent, where `condition` has the value `truth`."""
    match condition:
        case Name(name=name) | Call(function="given", args=(Name(name=name),)):
            known = frozenset([name]) if scope.optional(name) else frozenset()
            return (known, frozenset()) if truth else (frozenset(), known)
        case Unary(op="not"):
            return _told(condition.operand, not truth, scope)
        case Binary(op="and" | "or"):
            if (condition.op == "and") == truth:
                left, right = _told(condition.left, truth, scope), _told(condition.right, truth, scope)
                return left[0] | right[0], left[1] | right[1]
    return frozenset(), frozenset()


def _tensors(passed: Passed, scope: Scope) -> Iterator[str]:
    """The tensors, and lists of tensors, that an argument names."""
    if isinstance(passed, tuple):
        for item in passed:
            yield from _tensors(item, scope)
    elif isinstance(passed, Name) and (scope.tensor(passed) is not None or scope.writable(passed.name)):
        yield passed.name


def _numbers(param: Param, passed: Passed, scope: Scope) -> Iterator[str]:
    """The arguments that are no tensors and that an argument of a call computes with."""
    match passed:
        case Fill(value=value):
            yield from (name for name in names(value) if scope.value(Name(name=name)) is not None)
        case Absent():
            return
        case tuple():
            for item in passed:
                yield from _numbers(param, item, scope)
        case Name() if param.type.optional:
            return
        case _:
            yield from (name for name in names(passed) if scope.value(Name(name=name)) is not None)
