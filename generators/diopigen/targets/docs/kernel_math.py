"""A `kernel:` expression as TeX, for the formula of an op that gives none of its own."""

from typing import assert_never

from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary

# Each operator's sign and how tightly it binds.
_BINARY = {
    "or": (r"\vee", 1),
    "and": (r"\wedge", 2),
    "==": ("=", 3),
    "!=": (r"\ne", 3),
    "<": ("<", 3),
    "<=": (r"\le", 3),
    ">": (">", 3),
    ">=": (r"\ge", 3),
    "|": ("|", 4),
    "^": (r"\oplus", 5),
    "&": (r"\&", 6),
    "+": ("+", 7),
    "-": ("-", 7),
    "*": (r"\times", 8),
}
_UNARY = {"-": "-", "~": r"\sim ", "not": r"\neg "}
_PREFIX, _ATOM = 9, 10
_BRACKETS = {
    "abs": (r"\lvert ", r" \rvert"),
    "floor": (r"\lfloor ", r" \rfloor"),
    "ceil": (r"\lceil ", r" \rceil"),
    "sqrt": (r"\sqrt{", "}"),
    "exp": ("e^{", "}"),
}


def kernel_tex(output: str, kernel: Expr) -> str:
    """The equation `output = kernel`."""
    return f"{word(output)} = {_tex(kernel, 0)}"


def word(name: str) -> str:
    """A name as one word of a formula."""
    return rf"\text{{{name.replace('_', chr(92) + '_')}}}"


def _tex(expr: Expr, strength: int) -> str:
    """`expr`, in brackets where what stands around it binds more tightly."""
    text, own = _spelled(expr)
    return rf"\left( {text} \right)" if own < strength else text


def _spelled(expr: Expr) -> tuple[str, int]:
    match expr:
        case Name():
            return word(expr.name), _ATOM
        case Number():
            return {"inf": r"\infty"}.get(expr.text, _number(expr.text)), _ATOM
        case Text():
            return rf'\text{{"{expr.text}"}}', _ATOM
        case Unary():
            return _UNARY[expr.op] + _tex(expr.operand, _PREFIX), _PREFIX
        case Binary(op="/"):
            return rf"\frac{{{_tex(expr.left, 0)}}}{{{_tex(expr.right, 0)}}}", _ATOM
        case Binary():
            sign, own = _BINARY[expr.op]
            return f"{_tex(expr.left, own)} {sign} {_tex(expr.right, own + 1)}", own
        case Call():
            return _call(expr), _ATOM
        case other:
            assert_never(other)


def _number(text: str) -> str:
    """e.g. "1e-3" as 1 times a power of 10."""
    digits, mark, exponent = text.lower().partition("e")
    if mark and exponent:
        return rf"{digits} \times 10^{{{int(exponent)}}}"
    return r"\text{nan}" if text == "nan" else text


def _call(call: Call) -> str:
    if call.function == "where":
        condition, then, other = (_tex(arg, 0) for arg in call.args)
        return rf"\begin{{cases}} {then} & {condition} \\ {other} & \text{{otherwise}} \end{{cases}}"
    if call.function == "pow":
        base, exponent = call.args
        return f"{_tex(base, _ATOM)}^{{{_tex(exponent, 0)}}}"
    if call.function in _BRACKETS:
        left, right = _BRACKETS[call.function]
        return f"{left}{_tex(call.args[0], 0)}{right}"
    return rf"{word(call.function)} \left( {', '.join(_tex(arg, 0) for arg in call.args)} \right)"
