"""Finds the in-place and scalar forms of guessed ops, so that one entry stands for up to four functions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from diopigen.model.guess import GuessedOp
from diopigen.model.interface import DeclaredFunction
from diopigen.source.guess.types import CONST_TENSOR, TENSOR

_SCALAR = "const diopiScalar_t*"

Signature = list[tuple[str, str]]  # e.g. [("diopiTensorHandle_t", "input")]


def with_forms(ops: Sequence[GuessedOp], functions: Mapping[str, DeclaredFunction]) -> Iterator[GuessedOp]:
    """`ops` without those that are forms of another, whose entry then gives them too."""
    joined = {op.stem: op for op in ops}
    for stem in list(joined):
        if stem in joined and not (joined[stem].order or joined[stem].c or _writes_arguments(joined[stem])):
            _join(stem, joined, functions)
    return iter(joined.values())


def _writes_arguments(op: GuessedOp) -> bool:
    return any(line.written for line in op.args) or not op.outs


def _join(stem: str, ops: dict[str, GuessedOp], functions: Mapping[str, DeclaredFunction]) -> None:
    base = functions[f"diopi{stem}"]
    inplace = _among(f"{stem}Inp", ops, functions, _in_place(ops[stem], base))
    scalars = _scalar_params(base, functions.get(f"diopi{stem}Scalar"))
    scalar = _among(f"{stem}Scalar", ops, functions, _scalar(_signature(base), scalars)) if scalars else None
    both = None
    if scalar is not None and inplace is not None:
        both = _among(f"{stem}InpScalar", ops, functions, _scalar(_signature(functions[f"diopi{inplace}"]), scalars))
        if both is None:
            scalar = None  # an entry with both forms would give the fourth function too
    gained = [name for name in (inplace, scalar, both) if name is not None]
    for name in gained:
        del ops[name]
    args = tuple(
        replace(arg, line=f"{arg.line} | Scalar") if scalar and arg.name in scalars else arg for arg in ops[stem].args
    )
    ops[stem] = replace(
        ops[stem],
        symbols=(*ops[stem].symbols, *(f"diopi{name}" for name in gained)),
        forms=("out", "inplace") if inplace is not None else ("out",),
        args=args,
    )


def _among(
    stem: str, ops: Mapping[str, GuessedOp], functions: Mapping[str, DeclaredFunction], expected: Signature
) -> str | None:
    """`stem` if it is to be imported too and has just these parameters."""
    return stem if stem in ops and _signature(functions[f"diopi{stem}"]) == expected else None


def _signature(function: DeclaredFunction) -> Signature:
    return [(p.type.spelled, p.name) for p in function.params]


def _in_place(op: GuessedOp, base: DeclaredFunction) -> Signature:
    """The base without its outputs, the first tensor written."""
    outs = [line.name for line in op.outs]
    rest = [(type_, name) for type_, name in _signature(base) if name not in outs]
    first = next((at for at, (type_, _) in enumerate(rest) if type_ == CONST_TENSOR), None)
    return [(TENSOR if at == first else type_, name) for at, (type_, name) in enumerate(rest)]


def _scalar_params(base: DeclaredFunction, scalar: DeclaredFunction | None) -> tuple[str, ...]:
    """The parameters that are tensors in one and numbers in the other."""
    if scalar is None or len(scalar.params) != len(base.params):
        return ()
    pairs = zip(_signature(base), _signature(scalar), strict=True)
    return tuple(name for (type_, name), other in pairs if type_ == CONST_TENSOR and other == (_SCALAR, name))


def _scalar(signature: Signature, scalars: Sequence[str]) -> Signature:
    return [(_SCALAR if name in scalars else type_, name) for type_, name in signature]
