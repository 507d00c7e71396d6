"""What the template of composed functions lays out: signatures and the lines of each body."""

from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.c_spelling import c_args
from diopigen.model.compose import Temporary
from diopigen.model.composition import Action, Branch, Composition, Fill, StepCall
from diopigen.model.op import Function
from diopigen.model.program import Program
from diopigen.model.reserved import free_name
from diopigen.targets.composites.spelling import Speller, temporary
from diopigen.targets.cpp.lines import folded
from diopigen.text import mentions

_INDENT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionView:
    comment: str  # e.g. "Composed by the schema's compose: of diopiMul and diopiAdd."
    signature: tuple[str, ...]  # e.g. ("diopiError_t diopiAddcmul(...)",)
    opening: str  # e.g. "Steps steps(ctx);"
    steps: str  # e.g. "steps", the variable that keeps what was done
    lines: tuple[str, ...]  # of the body, with their indentation


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositesView:
    source: str  # e.g. "schemas/ops/arithmetic.yaml"
    headers: tuple[str, ...]  # e.g. ("functions_ext",): what the parts are declared in, beside functions.h
    texts: bool  # a condition compares texts
    functions: tuple[FunctionView, ...]


def composites_view(program: Program, topic: str) -> CompositesView:
    """Every function of one topic that is composed."""
    ops = {op.name for op in program.ops if op.topic == topic}
    by_symbol = {f.symbol: f for f in program.functions}
    composed = [(by_symbol[c.symbol], c) for c in program.compositions if by_symbol[c.symbol].op in ops]
    functions = tuple(_function(function, composition, by_symbol) for function, composition in composed)
    headers = {by_symbol[part].header for _, c in composed for part in c.parts} - {"functions"}
    return CompositesView(
        source=program.source(topic),
        headers=tuple(sorted(headers)),
        texts=any("string_view" in line for f in functions for line in f.lines),
        functions=functions,
    )


def _function(function: Function, composition: Composition, by_symbol: dict[str, Function]) -> FunctionView:
    speller = Speller(function, tuple(_temporaries(composition.actions)))
    body = _Body(speller, by_symbol)
    lines = tuple(body.lines(composition.actions, _INDENT))
    text = "\n".join(lines)
    params = [str(arg) if _read(arg.name, text) else f"{arg.type} /*{arg.name}*/" for arg in c_args(function)]
    return FunctionView(
        comment=f"From the {composition.source.value}" + (" lines" if composition.source.value == "compose" else ""),
        signature=folded(f"diopiError_t {function.symbol}({', '.join(params)})", after=2),
        opening=f"{speller.ours('Steps')} {speller.steps}(ctx);",
        steps=speller.steps,
        lines=lines,
    )


def _read(name: str, text: str) -> bool:
    return name == "ctx" or mentions(text, name)


def _temporaries(actions: tuple[Action, ...]) -> Iterator[str]:
    for action in actions:
        if isinstance(action, Temporary):
            yield action.name
        elif isinstance(action, Branch):
            yield from _temporaries((*action.then, *action.otherwise))


class _Body:
    """The lines of one function."""

    def __init__(self, speller: Speller, by_symbol: dict[str, Function]) -> None:
        self._speller = speller
        self._by_symbol = by_symbol
        self._fills = 0
        self.steps = speller.steps

    def lines(self, actions: tuple[Action, ...], indent: int) -> Iterator[str]:
        pad = " " * indent
        for action in actions:
            match action:
                case Temporary():
                    yield from _indented(pad, temporary(self._speller, action))
                case StepCall():
                    yield from self._call(action, pad)
                case Branch():
                    yield from _indented(pad, f"if ({self._speller.condition(action.condition)}) {{")
                    yield from self.lines(action.then, indent + _INDENT)
                    if action.otherwise:
                        yield f"{pad}}} else {{"
                        yield from self.lines(action.otherwise, indent + _INDENT)
                    yield f"{pad}}}"

    def _call(self, call: StepCall, pad: str) -> Iterator[str]:
        fills: dict[str, str] = {}
        for param, passed in call.args:
            if isinstance(passed, Fill):
                self._fills += 1
                number = free_name(f"number{self._fills}", self._speller.taken)
                fills[param.name] = number
                make = "widened" if passed.widened else "filled"
                value = self._speller.number(passed.value)
                made = f"{self.steps}.{make}({value}, {passed.like})"
                yield from _indented(pad, f"const diopiTensorHandle_t {number} = {made};")
        args = ", ".join(self._speller.args(call, self._by_symbol[call.symbol], fills))
        yield from _indented(pad, f"{self.steps}.run([&] {{ return ::{call.symbol}({args}); }});")


def _indented(pad: str, statement: str) -> Iterator[str]:
    return (pad + line for line in folded(statement, len(pad)))
