"""The elements of a captured call's tensors as a case keeps them: those that a drawn value could not stand for."""

from collections.abc import Iterator
from math import prod

from diopi_conformance.capture.contract_calls import Given
from diopi_conformance.capture.recorder import Tensor
from diopigen.model.op import Function, Op, Param
from diopigen.vocabulary.dtype import Kind
from diopigen.vocabulary.loaded import DTYPES

MOST = 1024  # elements of a tensor that are listed; longer ones are drawn as the schema says
_WHOLE = tuple(dtype.torch for dtype in DTYPES.types if dtype.kind in (Kind.BOOL, Kind.INTEGER))


def listed(op: Op, function: Function, given: Given, *, every: bool) -> dict[str, str]:
    """Of each argument that is listed, the recipe, e.g. {"indices": "listed(3, 0, 3)"}.

    These are positions, masks and counts, which the schema draws by a rule of their own; with `every`, all tensors.
    """
    ruled = dict(op.data)
    found = {}
    for param in function.ins:
        name = _drawn_as(op, param)
        tensors = list(_tensors(given.get(param.name)))
        if len(tensors) == 1 and (every or (name in ruled and tensors[0].dtype in _WHOLE)):
            text = _recipe(tensors[0])
            if text:
                found[name] = text
    return found


def _drawn_as(op: Op, param: Param) -> str:
    """The argument whose values the parameter gets: what a backward function keeps is an argument of the forward."""
    keeps = () if op.backward is None else op.backward.keeps
    return next((keep.source for keep in keeps if keep.name == param.name and keep.source), param.arg)


def _tensors(value: object) -> Iterator[Tensor]:
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Tensor):
            yield entry


def _recipe(tensor: Tensor) -> str:
    numbers = tensor.elements
    if not numbers or len(numbers) != prod(tensor.sizes) or len(numbers) > MOST:
        return ""
    return f"listed({', '.join(map(str, numbers))})"
