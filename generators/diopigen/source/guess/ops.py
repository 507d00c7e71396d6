"""Guesses an op from the declaration of a C function: which tensors are written, what is a list, how it is called."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from diopigen.model.guess import GuessedLine, GuessedOp
from diopigen.model.interface import DeclaredFunction, DeclaredParam
from diopigen.source.guess.types import CONST_TENSOR, TENSOR, guess_element, guess_value

_WORDS = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+(?:[0-9]+[a-z]*)?|[0-9]+[a-z]*")
_IN_PLACE = re.compile(r"Inp(Scalar|Tensor)?$")
_COUNT = re.compile(r"(?i)num|count|size|len|^n$")
_RESULT = re.compile(r"(?i)^(out|res|grad_in|grad_input)|(out|output|result)s?$")
_ITSELF = re.compile(r"(?i)^(self|x|input|inout|tensor|param|weight|w)s?$")
_INCOMING = re.compile(r"(?i)^grad_?out")


def guess_op(function: DeclaredFunction, header: str, taken: Iterable[str]) -> GuessedOp:
    """The op that gives `function` again; `taken` are names that it cannot have.

    A function that is no operator (another first parameter than the context, another result) is the caller's to refuse.
    """
    stem = function.name.removeprefix("diopi")
    reader = _Reader(function)
    reader.read()
    natural = [line.name for line in (*reader.outs, *reader.args)]
    order = [name for name in reader.order if name not in reader.counts]
    return GuessedOp(
        symbols=(function.name,),
        name=_free_name(stem, taken),
        stem=stem,
        header=header,
        doc=function.doc.replace("`", "") or f"To be described: {stem}.",
        args=tuple(reader.args),
        outs=tuple(reader.outs),
        order=() if order == natural else tuple(order),
        c=tuple(reader.c),
        span=function.span,
    )


def _free_name(stem: str, taken: Iterable[str]) -> str:
    name = "_".join(_WORDS.findall(stem)).lower()
    name = name if name[:1].isalpha() else f"op_{name}"
    known = set(taken)
    free = (f"{name}{suffix}" for suffix in ("", *(f"_{n}" for n in range(2, 1000))))
    return next(candidate for candidate in free if candidate not in known)


@dataclass(slots=True)
class _Reader:
    """Goes through the parameters of one function from left to right."""

    function: DeclaredFunction
    args: list[GuessedLine] = field(default_factory=list)
    outs: list[GuessedLine] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    c: list[tuple[str, str]] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)

    def read(self) -> None:
        params = [p if p.name else replace(p, name=f"arg{at}") for at, p in enumerate(self.function.params)][1:]
        self.counts = list(_counts(params))
        self.order = [p.name for p in params]
        inputs = [p for p in params if CONST_TENSOR in p.type.spelled or (_is_mutable(p) and self._is_only_read(p))]
        lists = dict(_lists(params))
        for at, param in enumerate(params):
            if param.name in self.counts:
                continue
            if param in inputs:
                self._given(param, lists.get(param.name))
            elif _is_mutable(param):
                leading = all(_is_mutable(p) or p.name in self.counts for p in params[:at])
                self._written(param, lists.get(param.name), leading, inputs)
            else:
                self._value(param, leading=not self.args)
        self._let_something_be_written()

    def _is_only_read(self, param: DeclaredParam) -> bool:
        told = dict(self.function.directions).get(param.name)
        return told == "in" or (told is None and _INCOMING.search(param.name) is not None)

    def _written(self, param: DeclaredParam, count: str | None, leading: bool, inputs: Sequence[DeclaredParam]) -> None:
        element, _ = guess_element(param.name)
        tensor = f"Tensor<{element}>" + (f"[{count}]" if count else "")
        told = dict(self.function.directions).get(param.name)
        if count is None and param.type.spelled == f"{TENSOR}*":
            self._add_out(param, f"new {tensor} like any", ("allocated by the function", "its shape"))
        elif told == "out" or (told is None and self._is_result(param, leading, inputs)):
            shape = inputs[0].name if inputs else "scalar()"
            self._add_out(
                param, f"{tensor} like {shape}", ("its shape",) if told else ("written and not read", "its shape")
            )
        else:
            why = () if told else ("read and written",)
            self.args.append(GuessedLine(name=param.name, line=f"inout {tensor}", why=why, written=True))

    def _add_out(self, param: DeclaredParam, line: str, why: tuple[str, ...]) -> None:
        self.outs.append(GuessedLine(name=param.name, line=line, why=why, written=True))

    def _is_result(self, param: DeclaredParam, leading: bool, inputs: Sequence[DeclaredParam]) -> bool:
        if _IN_PLACE.search(self.function.name) or _ITSELF.search(param.name):
            return False
        if _RESULT.search(param.name):
            return True
        if not leading:
            return False
        first = next(p for p in self.function.params if _is_mutable(p))
        return not _ITSELF.search(first.name) and (bool(inputs) or not self._all_tensors_are_written())

    def _all_tensors_are_written(self) -> bool:
        """An optimizer's step, for instance: several tensors, none of them const."""
        return sum(_is_mutable(p) for p in self.function.params) > 1

    def _given(self, param: DeclaredParam, count: str | None) -> None:
        element, why = guess_element(param.name)
        tensor = f"Tensor<{element}>" + (f"[{count}]" if count else "")
        spelled = f"{CONST_TENSOR}*" if count else CONST_TENSOR
        if param.type.spelled != spelled:
            self.c.append((param.name, param.type.spelled))
        self.args.append(GuessedLine(name=param.name, line=tensor, why=(why, "never null")))

    def _value(self, param: DeclaredParam, leading: bool) -> None:
        guess = guess_value(param.type, param.name)
        if guess.c is not None:
            self.c.append((param.name, guess.c))
        why = () if guess.why is None else (guess.why,)
        if guess.host and dict(self.function.directions).get(param.name) == "in":
            self.c.append((param.name, param.type.spelled))
            self.args.append(GuessedLine(name=param.name, line=f"{guess.line}?", why=("only read",)))
        elif not guess.host:
            self.args.append(GuessedLine(name=param.name, line=guess.line, why=why))
        elif guess.line == "int" and not leading:
            line = GuessedLine(name=param.name, line="inout int", why=("read and written",), written=True)
            self.args.append(line)
        else:
            self._add_out(param, f"host {guess.line}", why)

    def _let_something_be_written(self) -> None:
        """No op writes nothing: a pointer, or else the first tensor, must be what is changed."""
        if self.outs or any(line.written for line in self.args):
            return
        kinds = [line.line.partition("<")[0] for line in self.args]
        at = next((kinds.index(kind) for kind in ("pointer", "Tensor") if kind in kinds), None)
        if at is None:
            return
        line = self.args[at]
        spelled = next(p.type.spelled for p in self.function.params if p.name == line.name)
        self.c = [(name, c) for name, c in self.c if name != line.name]
        if spelled not in ("void*", TENSOR):
            self.c.append((line.name, spelled))
        why = ("written, for something must be",)
        self.args[at] = replace(line, line=f"inout {line.line}", why=why, written=True)


def _is_mutable(param: DeclaredParam) -> bool:
    """A tensor that may be written, or a list of such, or a place for one that is allocated."""
    return param.type.spelled in (TENSOR, f"{TENSOR}*")


def _lists(params: Sequence[DeclaredParam]) -> Iterator[tuple[str, str]]:
    """The name of each list of tensors and of its count: pointers to handles, side by side, then a number."""
    start = 0
    for at, param in enumerate(params):
        if param.type.spelled in (f"{TENSOR}*", f"{CONST_TENSOR}*"):
            continue
        if param.type.spelled == "int64_t" and at > start and _COUNT.search(param.name):
            yield from ((before.name, param.name) for before in params[start:at])
        start = at + 1


def _counts(params: Sequence[DeclaredParam]) -> Iterator[str]:
    yield from dict.fromkeys(count for _, count in _lists(params))
