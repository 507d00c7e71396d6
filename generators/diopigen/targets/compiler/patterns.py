"""What a compiler needs of the patterns: trees of operators, with every name told apart."""

from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.model.op import Form
from diopigen.model.pattern import ANYTHING, WORDS, Input, Pattern, Written
from diopigen.model.program import Program
from diopigen.model.type import TensorType
from diopigen.model.vendor import Origin
from diopigen.records import patterns as records

_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "~": "bitwise_not",
    "not": "logical_not",
}


def patterns(program: Program) -> records.Patterns:
    """In the order of the file."""
    return records.Patterns(
        dtypes={dtype.name: dtype.torch for dtype in program.dtypes.types if dtype.torch is not None},
        patterns={each.name: _pattern(each, program) for each in program.patterns},
    )


def _pattern(pattern: Pattern, program: Program) -> records.Pattern:
    names = _Names(pattern)
    return records.Pattern(
        doc=pattern.doc,
        by=tuple(_service(place.text, program) for place in pattern.by),
        inputs={given.name: _input(given) for given in pattern.inputs},
        without_gradient=tuple(place.text for place in pattern.without_gradient),
        where={name: tuple(dtype.name for dtype in members.members) for name, members in pattern.where},
        parts={name: tuple(names.tree(way.expr) for way in ways) for name, ways in pattern.parts},
        match=tuple(
            records.Spelling(tree=names.tree(s.written.expr), text=_text(s.written), sets=dict(s.sets))
            for s in pattern.match
        ),
        when=tuple(names.tree(condition.expr) for condition in pattern.when),
        becomes=None if pattern.becomes is None else names.tree(pattern.becomes.expr),
        off=_off(pattern, program),
        forward=pattern.launches.forward,
        backward=pattern.launches.backward,
        examples=tuple(dict(row) for row in pattern.examples),
    )


def _off(pattern: Pattern, program: Program) -> str | None:
    vendor = program.vendor
    if vendor is not None and pattern.name in vendor.without_patterns:
        return f"{vendor.name} goes without it"
    if vendor is None or not pattern.own:
        return None
    plain = all(_is_plain(symbol, program) for place in pattern.by for symbol in _service(place.text, program).symbols)
    return "the functions are portable kernels, and fused loops are as fast" if plain else None


def _is_plain(symbol: str, program: Program) -> bool:
    plan = program.plan(symbol)
    return plan is None or plan.implementation.origin not in (Origin.VENDOR, Origin.BASE)


def _text(written: Written) -> str:
    return " ".join(written.place.text.split())


def _service(name: str, program: Program) -> records.Service:
    functions = [f for f in program.forms(name) if f.form in (Form.OUT, Form.BACKWARD)]
    op = program.op(name)
    sets = op.where if op is not None else ()
    return records.Service(
        symbols=tuple(function.symbol for function in functions),
        dtypes=tuple(dtype.name for dtype in sets[0][1].members) if sets else (),
    )


def _input(given: Input) -> records.Input:
    tensor = given.type if isinstance(given.type, TensorType) else None
    return records.Input(
        kind="tensor" if tensor is not None else str(given.type),
        element=str(tensor.element) if tensor is not None else None,
        default=given.default,
        optional=given.has_default,
    )


class _Names:
    """Tells the names of a pattern apart."""

    def __init__(self, pattern: Pattern) -> None:
        self._inputs = {given.name for given in pattern.inputs}
        self._parts = {name for name, _ in pattern.parts}
        self._elements = {name for name, _ in pattern.where}

    def tree(self, expr: Expr) -> records.Tree:
        match expr:
            case Name():
                return self._name(expr.name)
            case Number():
                return ("number", expr.text)
            case Text():
                return ("text", expr.text)
            case Unary(op="-", operand=Number()):
                return ("number", f"-{expr.operand}")
            case Unary():
                return ("call", "neg" if expr.op == "-" else _OPERATORS[expr.op], self.tree(expr.operand))
            case Binary():
                return ("call", _OPERATORS.get(expr.op, expr.op), self.tree(expr.left), self.tree(expr.right))
            case Call():
                return ("call", expr.function, *map(self.tree, expr.args))

    def _name(self, name: str) -> records.Tree:
        if name in self._inputs:
            return ("input", name)
        if name in self._parts:
            return ("part", name)
        if name in WORDS:
            return ("word", WORDS[name])
        if name == ANYTHING:
            return ("anything",)
        return ("element" if name in self._elements else "dtype", name)
