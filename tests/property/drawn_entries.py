"""Draws entries of schemas/ops: most of each is good; names, types, numbers and calls may be anything."""

import json

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PLAIN = _words("""
    other weight bias alpha n mode dim x y scale mask index size min abs
""")
# What generated sources call their own variables, functions, classes and namespaces, or could.
OURS = _words("""
    call steps run status Number Sizes List At promote floating math std impl Float Compute apply number1 x_
    x_2 steps_ call_ result mul1 input_wide mode_is_tanh mode_is_given Steps string_view dtype shape
    temporary filled joined Rule Use kRule1 get view scalar integer real in inout allocated final override
    import module T pow tanh sqrt accumulated complex_of vendor tensor Context operator_ numel rank length
    Half
""")
# Keywords, macros and types.
TAKEN = _words("""
    new register default signed true class int auto linux NULL requires char8_t int64_t restrict typeof
    _Bool a__b ctx C elementwise or_zero Any nullptr diopi diopiAdd ReductionMean Contiguous INFINITY float
    double size_t errno unix export common context
""")
NAMES = PLAIN * 12 + OURS * 3 + TAKEN
ODD_NUMBERS = _words("""
    007 08 300 -129 65536 2147483648 4294967296 1e39 1e400 inf nan 9223372036854775807 9223372036854775808
    -9223372036854775809 99999999999999999999 1. .5
""")
NUMBERS = ("0", "1", "-1", "2", "0.5") * 10 + ODD_NUMBERS
WORDS = ("none", "tanh", '"a b"', '"c-d"', '"e\\"', '"??="', '""')
ELEMENTS = ("float",) * 6 + ("any", "integer", "number", "bool", "complex", "[u8, i8]", "[f16, bf16]", "i64")
SPELLINGS = (
    "const int64_t",
    "unsigned long",
    "int",
    "double",
    "const float*",
    "diopiTensorHandle_t",
    "diopiSize_t*",
    "void (*)(int)",
    "int64_t[4]",
    "const diopiSize_t",
    "foo",
    "unsigned lon",
    "struct x",
    "void",
    "diopiScalar_t*",
    "bool",
    "short",
)
UNARY = ("exp", "abs", "sign", "floor", "isnan", "sigmoid", "sqrt", "erfinv", "round")
BINARY = ("pow", "remainder", "floor_div", "min", "max")
OPERATORS = ("+", "-", "*", "/") * 4 + ("==", "!=", "<", ">=", "and", "or", "&", "|", "^")
SHAPES = (
    "{0}",
    "broadcast({0}, {1})",
    "scalar()",
    "shape(2, -1)",
    "shape(size({0}, 0), 3)",
    "reduced({0}, [0])",
    "any",
)


@st.composite
def entries(draw: DrawFn, op: str) -> str:
    """The text of an entry for an op of that name."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=7, unique=True))
    first = draw(st.sampled_from(("input", *names[:1])))
    args = {first: "Tensor<T>", **{name: draw(type_lines()) for name in names if name != first}}
    lines = [f"{op}:", "  doc: An op.", "  args:", *(f"    {name}: {line}" for name, line in args.items())]
    out = draw(st.sampled_from(("out",) * 60 + OURS + TAKEN[:8]))
    element = draw(st.sampled_from(("T",) * 8 + ("float(T)", "bool", "promote(T, U)", "sum(T)")))
    shape = draw(st.sampled_from(SHAPES[:1] * 30 + SHAPES)).format(*(list(args) * 2)[:2])
    lines += [f"  out: {{{out}: {json.dumps(f'Tensor<{element}> like {shape}')}}}"]
    spelled = f"{' '.join(args.values())} <{element}>"
    used = [v for v in "TU" if any(f"{v}{end}" in spelled for end in ">),")]
    lines.append("  where: {" + ", ".join(f"{v}: {draw(st.sampled_from(ELEMENTS))}" for v in used) + "}")
    if draw(st.integers(0, 3)) == 0:
        lines.append(f"  variants: {draw(st.sampled_from(('[out, inplace]', '[inplace]')))}")
    if draw(st.integers(0, 9)) == 0:
        stem = draw(st.sampled_from(("Success", "Size_t", "Tensor", "new", "GetTensorShape", "Dtype_")))
        lines.append(f"  name: {stem}{draw(st.sampled_from(('', op[-3:])))}")
    if draw(st.integers(0, 5)) == 0:
        spelled = draw(st.sampled_from(SPELLINGS))
        lines.append(f"  c: {{{draw(st.sampled_from(list(args)))}: {json.dumps(spelled)}}}")
    if draw(st.booleans()):
        lines.append(f"  kernel: {json.dumps(draw(expressions(tuple(args.items()))))}")
    if draw(st.booleans()):
        lines += ["  compose:", *draw(statements(tuple(args.items()), out))]
    if draw(st.integers(0, 3)) == 0:
        lines += [
            "  backward:",
            f"    grads: [{first}]",
            f"    grad_outputs: {{{draw(st.sampled_from(NAMES))}: {out}}}",
        ]
        lines += [f"    keeps: {{{draw(st.sampled_from(NAMES))}: {first}}}"]
    if draw(st.booleans()):
        lines += ["  cases:", f"    - {{{', '.join(draw(cells(args)))}}}"]
    return "\n".join(lines) + "\n"


@st.composite
def type_lines(draw: DrawFn) -> str:
    """A line under `args:`."""
    number = draw(st.sampled_from(NUMBERS))
    word = draw(st.sampled_from(WORDS))
    name = draw(st.sampled_from(NAMES))
    return draw(
        st.sampled_from(
            (
                *("Tensor<T>", "Scalar", "float = 1", "int = 1") * 8,
                "Tensor<U>",
                "Tensor<T>?",
                "Tensor<i64>",
                "inout Tensor<T>",
                json.dumps("Tensor<T> | Scalar"),
                "Scalar",
                f"Scalar = {number}",
                "Scalar?",
                "int",
                f"int = {number}",
                "int?",
                f"int32 = {number}",
                "float",
                f"float = {number}",
                "float?",
                f"float32 = {number}",
                "bool = false",
                "bool?",
                "str",
                f"'str(none, {word}) = {word}'",
                "Reduction",
                "RoundMode = none",
                "MemoryFormat",
                '"int[]"',
                f'"int[2] = {number}"',
                f'"int[2] = [1, {number}]"',
                '"int[]?"',
                "Dim",
                "Generator",
                "pointer",
                f'"Tensor<T>[{name}]"',
            )
        )
    )


@st.composite
def expressions(draw: DrawFn, args: tuple[tuple[str, str], ...], depth: int = 3) -> str:
    """An expression of a kernel, or of what the host computes."""
    kind = draw(st.integers(0, 7 if depth else 1))
    name, line = draw(st.sampled_from(args))
    if kind == 0:
        return draw(st.sampled_from(NUMBERS)).lstrip("-")
    if kind <= 2:
        if "str" in line or line.startswith(("Reduction", "RoundMode")):
            word = (
                draw(st.sampled_from((*WORDS, "mean", "floor"))) if "str" not in line else draw(st.sampled_from(WORDS))
            )
            word = word if word.startswith('"') or "str" not in line else f'"{word}"'
            return f"where({name} == {word}, {args[0][0]}, 0)"
        return name
    inner = expressions(args, depth - 1)
    if kind == 3:
        return f"{draw(st.sampled_from(('-',) * 8 + ('~', 'not ')))}({draw(inner)})"
    if kind == 4:
        return f"{draw(st.sampled_from(UNARY))}({draw(inner)})"
    if kind == 5:
        return f"{draw(st.sampled_from(BINARY))}({draw(inner)}, {draw(inner)})"
    if kind == 6:
        chosen = draw(st.sampled_from((f"given({name})", draw(inner))))
        return f"where({chosen}, {draw(inner)}, {draw(inner)})"
    return f"({draw(inner)}) {draw(st.sampled_from(OPERATORS))} ({draw(inner)})"


@st.composite
def statements(draw: DrawFn, args: tuple[tuple[str, str], ...], out: str) -> list[str]:
    """Lines of `compose:`: what is read last is written to the output."""
    name = draw(st.sampled_from(NAMES))
    first = args[0][0]
    element = draw(st.sampled_from(("T",) * 9 + ("promote(T, f32)", "float(T)", "sum(T)", "bool", "complex(T)")))
    shape = draw(st.sampled_from(SHAPES[:1] * 20 + SHAPES)).format(*([n for n, _ in args] * 2)[:2])
    operand = draw(st.one_of(st.sampled_from([n for n, _ in args]), st.sampled_from(NUMBERS), expressions(args, 2)))
    last = draw(st.one_of(st.sampled_from([n for n, _ in args]), st.sampled_from(NUMBERS)))
    op = draw(st.sampled_from(("mul", "add", "maximum", "lt", "bitwise_and")))
    lines = [
        f"- {name}: {json.dumps(f'Tensor<{element}> like {shape}')}",
        f"- {json.dumps(f'{op}({name}, {first}, {operand})')}",
    ]
    ending = f"- {json.dumps(f'{op}({out}, {name}, {last})')}"
    condition = draw(st.sampled_from([n for n, _ in args]))
    if draw(st.integers(0, 2)) == 0:
        return [
            f"    {line}"
            for line in (*lines, f"- if {condition}:", f"  {ending}", "  else:", f"  - neg({out}, {name})")
        ]
    return [f"    {line}" for line in (*lines, ending)]


@st.composite
def cells(draw: DrawFn, args: dict[str, str]) -> list[str]:
    """A row of `cases:`."""
    found = []
    for name, line in args.items():
        if "Tensor" in line:
            value = (
                draw(st.sampled_from(("[2, 3]",) * 20 + ("[]", "[0, 5]", "[-1]", "3")))
                if "[" not in line
                else "[[2], [3]]"
            )
        else:
            value = draw(st.sampled_from((*("1",) * 40, *NUMBERS, "[1, 2]", "[1, 2, 3]", "none", "true")))
        found.append(f"{name}: {value}")
    return found
