"""Whole-program rules, each a small function with a number and a test; ops that break one are dropped."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from diopigen.diagnostics import Diagnostics, Span
from diopigen.kept import KeptTexts
from diopigen.model.arities import WrittenFunctions, WrittenHeader, takes
from diopigen.model.expr import Call, Expr, calls
from diopigen.model.op import Arg, Form, Function, Op, Place, Role
from diopigen.model.program import Program
from diopigen.model.type import (
    ANY,
    ENUMERATORS,
    ShapeCall,
    ShapeName,
    TensorType,
    Value,
    ValueType,
    negative_lengths,
    parts,
    shape_names,
    variables_of,
)
from diopigen.passes.contract.check_names import v12_names_can_be_spelled_in_c, v13_tensors_are_handles_in_c
from diopigen.passes.contract.ranges import constant, held, possible_dtypes, range_of, value_holds
from diopigen.passes.contract.verify_kernels import BARE_WORDS, Finding, v3_kernels_are_elementwise, words_of
from diopigen.text import listing, suggestion
from diopigen.vocabulary.draws import COLUMNS, DRAW


def verify(
    program: Program, written: WrittenFunctions, diagnostics: Diagnostics, kept: KeptTexts | None = None
) -> Program:
    """Checks every op that `kept` does not know to be sound against every rule; gives the program without the others.

    Of other ops the rules read the names.
    """
    good: list[Op] = []
    ground = KeptTexts.key(program.dtypes, program.runtime, written, [op.name for op in program.ops])
    for op in program.ops:
        key = KeptTexts.key(ground, op.digest)
        if kept is not None and kept.found(key) is not None:
            good.append(op)
            continue
        functions = program.forms(op.name)
        findings = [finding for rule in RULES for finding in rule(op, functions, program)]
        findings += v9_functions_exist(op, written)
        for finding in findings:
            diagnostics.error(finding.code, finding.message, finding.span, finding.hint, about=finding.about)
        if not findings:
            good.append(op)
            if kept is not None:
                kept.keep(key, "")
    names = {op.name for op in good}
    return replace(program, ops=tuple(good), functions=tuple(f for f in program.functions if f.op in names))


def _tensors(op: Op) -> Iterator[tuple[Arg, TensorType]]:
    return ((a, a.type) for a in (*op.args, *op.outs) if isinstance(a.type, TensorType))


def v1_variables_have_sets(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V1: every element variable has a set in `where`, and every one there is used."""
    known = [name for name, _ in op.where]
    used: dict[str, None] = {}
    for arg, type_ in _tensors(op):
        for name in variables_of(type_.element):
            used[name] = None
            if name not in known:
                hint = suggestion(name, known) or f"add 'where: {{{name}: any}}'"
                yield Finding(
                    code="unbound-variable",
                    message=f"'{name}' has no dtypes in 'where'",
                    span=arg.span,
                    hint=hint,
                )
    for keep in op.backward.keeps if op.backward is not None else ():
        if isinstance(keep.type, TensorType):
            used.update(dict.fromkeys(variables_of(keep.type.element)))
    for name in known:
        if name not in used:
            yield Finding(
                code="unused-variable",
                message=f"'where' of '{op.name}' gives '{name}', which no type uses",
                span=op.place(f"where.{name}:").span,
                hint="remove it",
            )


def v2_names_are_unique(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V2: no argument has the name of an output."""
    outs = {out.name for out in op.outs}
    for arg in op.args:
        if arg.name in outs:
            yield Finding(
                code="duplicate-name",
                message=f"'{arg.name}' is both an argument and an output of '{op.name}'",
                span=arg.span,
                hint="rename one of them",
            )


def v4_shapes_name_arguments(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V4: what stands after `like` names arguments of the op, or ATen's that the C function does not take."""
    known = [arg.name for arg in op.args] + [out.name for out in op.outs]
    known += [name for clause in op.aten for name in clause.ignore]
    for out in op.outs:
        for name in shape_names(out.shape) if out.shape is not None else ():
            if name not in known:
                yield Finding(
                    code="unknown-arg",
                    message=f"the shape of '{out.name}' names '{name}', which '{op.name}' does not have",
                    span=_out_place(op, out).word(name),
                    hint=suggestion(name, known) or f"it has {', '.join(known)}",
                )
        if out.shape is None and isinstance(out.type, TensorType):
            yield Finding(
                code="no-shape",
                message=f"the output '{out.name}' of '{op.name}' has no shape",
                span=out.span,
                hint="add 'like' and an argument or a rule",
            )
        for length in negative_lengths(out.shape) if out.shape is not None else ():
            yield Finding(
                code="out-of-range",
                message=f"the shape of '{out.name}' has the length {length}",
                span=_out_place(op, out).word(str(length)),
                hint="write a size of 0 or more",
            )
        yield from _lengths_are_known(op, out)


def _lengths_are_known(op: Op, out: Arg) -> Iterator[Finding]:
    """The caller allocates by the shape, so that only a function that allocates may leave it to the data."""
    found = parts(out.shape) if out.shape is not None and out.role is not Role.CALLEE_OUT else ()
    if any(isinstance(part, ShapeName) and part.name == ANY for part in found):
        yield Finding(
            code="unknown-length",
            message=f"the caller cannot allocate '{out.name}', whose shape depends on the data",
            span=_out_place(op, out).word(ANY),
            hint="mark the output 'new', or give its maximum size",
        )


def _out_place(op: Op, out: Arg) -> Place:
    return op.places.at(f"out.{out.name}") or op.place("out")


def v5_defaults_fit(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V5: a default is a value that its type can have."""
    for arg in op.args:
        if arg.has_default and not _fits(arg):
            yield Finding(
                code="bad-default",
                message=f"the default of '{arg.name}' is not of type {arg.type}",
                span=arg.span,
                hint=_default_hint(arg),
            )


def _default_hint(arg: Arg) -> str | None:
    if isinstance(arg.type, ValueType) and arg.type.length is not None and isinstance(arg.default, tuple):
        return f"give {arg.type.length} numbers, or one for all"
    if isinstance(arg.type, ValueType) and arg.type.value in ENUMERATORS:
        return f"use {listing(ENUMERATORS[arg.type.value])}"
    if isinstance(arg.type, ValueType) and arg.type.words:
        return f"use {listing(arg.type.words)}"
    if arg.default is None:
        return "mark it with '?' to make it optional"
    return range_of(arg.type.value) if isinstance(arg.type, ValueType) else None


def _fits(arg: Arg) -> bool:
    value, type_ = arg.default, arg.type
    if isinstance(type_, TensorType):
        return value is None and type_.optional
    if value is None:
        return type_.optional or type_.value is Value.GENERATOR
    if type_.many:
        items = value if isinstance(value, tuple) else (value,)
        enough = not isinstance(value, tuple) or type_.length in (None, len(value))
        return enough and all(value_holds(Value.INT, item) for item in items)
    match type_.value:
        case Value.STR:
            return isinstance(value, str) and value in (type_.words or (value,))
        case Value.BOOL | Value.INT | Value.INT32 | Value.DIM | Value.FLOAT | Value.FLOAT32 | Value.SCALAR:
            return value_holds(type_.value, value)
        case Value.REDUCTION | Value.ROUND_MODE | Value.MEMORY_FORMAT:
            return value in ENUMERATORS[type_.value]
        case Value.GENERATOR | Value.POINTER:
            return False


_QUOTED = re.compile(r"`([A-Za-z_][A-Za-z0-9_]*)`")


def v6_docs_name_arguments(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V6: a name in backquotes in `doc` is an argument, an output, another op or an enumerator."""
    known = [arg.name for arg in (*op.args, *op.outs)]
    for name in _QUOTED.findall(op.doc):
        if name not in known and name not in BARE_WORDS and program.op(name) is None:
            yield Finding(
                code="unknown-arg",
                message=f"the doc of '{op.name}' names `{name}`, which it does not have",
                span=op.place("doc").word(name),
                hint=suggestion(name, known) or f"it has {', '.join(known)}",
                about=(name,),
            )


def v7_data_names_arguments(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V7: `data` draws values for arguments, in ways that there are."""
    known = [arg.name for arg in op.args]
    kept = [k.name for k in op.backward.keeps] if op.backward is not None else []
    drawn = [(name, expr, op.place(f"data.{name}:"), op.place(f"data.{name}")) for name, expr in op.data]
    for row in op.cases:
        place = Place(text="", span=row.span)
        drawn += [(name, expr, place, place) for name, expr in row.data]
    for name, expr, key, value in drawn:
        if name not in known and name not in kept:
            yield Finding(
                code="unknown-arg",
                message=f"'data' of '{op.name}' draws '{name}', which it does not have",
                span=key.span,
                hint=suggestion(name, known) or f"it has {', '.join(known)}",
            )
        yield from _draw_findings(op, name, expr, value)
        for word in _unknown_draws(expr):
            yield Finding(
                code="unknown-function",
                message=f"'{word}' is not a way to draw values",
                span=value.word(word),
                hint=suggestion(word, DRAW) or f"use {', '.join(DRAW)}",
            )


def _draw_findings(op: Op, name: str, expr: Expr, place: Place) -> Iterator[Finding]:
    """A draw takes as many arguments as it needs, has something to draw, and draws what the tensor's dtypes hold."""
    if not isinstance(expr, Call) or expr.function not in DRAW:
        return
    draw = DRAW[expr.function]
    low, high = draw.least, draw.most
    if not low <= len(expr.args) <= high:
        counts = f"{low}" if low == high else f"{low} or more"
        message = f"'{expr.function}' takes {counts} arguments, not {len(expr.args)}"
        yield Finding(code="wrong-arity", message=message, span=place.word(expr.function))
        return
    if draw is COLUMNS:
        for column in expr.args:
            yield from _draw_findings(op, name, column, place)
        return
    numbers = [value for arg in expr.args if (value := constant(arg)) is not None]
    if draw.range and len(numbers) == 2 and not numbers[0] < numbers[1]:
        message = f"there are no values between {numbers[0]} and {numbers[1]}"
        yield Finding(
            code="out-of-range", message=message, span=place.word(expr.function), hint="write the lower number first"
        )
    elif draw.truth and numbers and not 0 <= numbers[0] <= 1:
        message = f"{numbers[0]} is not a probability"
        yield Finding(
            code="out-of-range", message=message, span=place.word(expr.function), hint="write a number from 0 to 1"
        )
    elif draw.range or draw.numbers:
        last = 1 if expr.function in ("integers", "distinct_integers") else 0  # what ends a range is not drawn
        drawn = [*numbers[:1], *(n - last for n in numbers[1:])] if last else numbers
        arg = next((a for a in op.args if a.name == name), None)
        dtypes = possible_dtypes(op, arg.type.element) if arg is not None and isinstance(arg.type, TensorType) else ()
        for value in drawn:
            if dtypes and not held(dtypes, value):
                message = f"no dtype of '{name}' holds {value}"
                yield Finding(
                    code="out-of-range", message=message, span=place.span, hint=f"it is '{arg.type}'" if arg else None
                )


def _unknown_draws(expr: object) -> Iterator[str]:
    """What stands in the place of a way to draw values; of columns each has its own."""
    if not isinstance(expr, Call) or expr.function not in DRAW:
        yield expr.function if isinstance(expr, Call) else str(expr)
    elif expr.function == "columns":
        for arg in expr.args:
            yield from _unknown_draws(arg)


def v8_ops_write_something(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V8: an op has an output, or writes one of its arguments."""
    writes = op.outs or any(arg.role is Role.INOUT for arg in op.args) or Form.INPLACE in op.forms
    if not writes:
        yield Finding(
            code="no-output",
            message=f"'{op.name}' writes nothing",
            span=op.span,
            hint="add 'out:', or mark an argument 'inout'",
        )


def v10_rows_use_known_words(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V10: a case gives a str that lists its words, or an enum, one of them."""
    types = {arg.name: arg.type for arg in op.args}
    for row in op.cases:
        for name, value in row.values:
            type_ = types.get(name)
            words = words_of(type_) if isinstance(type_, ValueType) else ()
            if words and value not in words:
                yield Finding(
                    code="unknown-word",
                    message=f"'{value}' is not a value of '{name}'",
                    span=row.span,
                    hint=suggestion(str(value), words) or f"use {listing(words)}",
                )


def v11_prompts_are_answered(op: Op, functions: tuple[Function, ...], program: Program) -> Iterator[Finding]:
    """V11: no text is the prompt between angle brackets that a new entry comes with."""
    for key, text in (("doc", op.doc), ("math", op.math)):
        if text is not None and text.startswith("<") and text.endswith(">"):
            yield Finding(
                code="placeholder",
                message=f"the '{key}' of '{op.name}' is still a placeholder",
                span=op.place(key).span,
                hint="replace the angle brackets" + (", or leave it out" if key == "math" else ""),
            )


def v9_functions_exist(op: Op, written: WrittenFunctions) -> Iterator[Finding]:
    """V9: shape rules, checks and what `derive` and `raises` call are functions of headers, with as many arguments."""
    for out in op.outs:
        for call in parts(out.shape) if out.shape is not None else ():
            if isinstance(call, ShapeCall):
                span = _out_place(op, out).word(call.rule)
                yield from _written(written["shape"], call, span)
    for clause in op.aten:
        for check, span in clause.checks:
            yield from _written(written["checks"], check, span)
        derived = [expr for _, expr in clause.derive]
        for expr in (*derived, clause.raises) if clause.raises is not None else derived:
            for function in calls(expr):
                yield from _written(written["derive"], function, clause.span)


def _written(header: WrittenHeader, call: Call | ShapeCall, span: Span) -> Iterator[Finding]:
    name, count = (call.function if isinstance(call, Call) else call.rule), len(call.args)
    if name not in header.functions:
        kind, code = ("function", "unknown-function") if isinstance(call, Call) else ("shape rule", "unknown-shape")
        hint = suggestion(name, header.functions) or f"see {header.shown}"
        yield Finding(code=code, message=f"there is no {kind} '{name}'", span=span, hint=hint)
    elif not takes(header.functions, name, count):
        counts = [f"{low}" if low == high else f"{low} to {high}" for low, high in header.functions[name]]
        words = " or ".join(dict.fromkeys(counts))
        yield Finding(code="wrong-arity", message=f"'{name}' takes {words} arguments, not {count}", span=span)


Rule = Callable[[Op, tuple[Function, ...], Program], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    v1_variables_have_sets,
    v2_names_are_unique,
    v3_kernels_are_elementwise,
    v4_shapes_name_arguments,
    v5_defaults_fit,
    v6_docs_name_arguments,
    v7_data_names_arguments,
    v8_ops_write_something,
    v10_rows_use_known_words,
    v11_prompts_are_answered,
    v12_names_can_be_spelled_in_c,
    v13_tensors_are_handles_in_c,
)
