"""Arguments as a worker gets them: tensors laid out in storages whose other bytes would show if they were touched."""

from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from diopi_conformance.cases.plan import Case, CasePlan, Function, Param
from diopi_conformance.expected.expectations import SCRATCH
from diopi_conformance.prepare.call import Buffer
from diopi_conformance.values.elements import Array, encode, storage_dtype
from diopi_conformance.values.inputs import UnsoundCase, Values
from diopi_conformance.values.views import Layout, Sizes, layout, row_major, spread
from diopigen.vocabulary.checks import CHECK

# By the seed of the run. Between and around the elements of an input: NaN, or huge, so that reading there shows.
_GAPS = (0xFF, 0x7F, 0xFE)
_POISONS = (0xCB, 0x5A, 0x93, 0x77, 0x2D)  # in outputs
NATIVE = "native"  # in place of a vendor's number of a memory format: that of the first tensor


def argument(
    function: Function, param: Param, case: Case, values: Values, expected: dict[str, Any], buffers: list[Buffer]
) -> dict[str, Any]:
    """The worker's view of one argument; its tensors are added to `buffers`."""
    argument: dict[str, Any] = {"pass": param.passing, "value": None}
    match param.passing:
        case "tensor":
            argument["value"] = _place(function, param, case, values, expected, buffers)
        case "tensors":
            argument["value"] = _place_list(param, case, values, expected, buffers)
        case "count":
            listed = values.get(param.of)
            argument["value"] = len(expected[param.of] if listed is None else listed)
        case "tensor*":
            if param.name not in expected:
                raise UnsoundCase(f"the reference does not give '{param.name}'")
            if isinstance(expected[param.name], list):
                argument["count"] = len(expected[param.name])
        case "enum":
            argument["value"] = param.enumerators.index(values[param.name])
        case _ if param.role == "host":
            argument["host"] = True
        case "int64" if values[param.name] == NATIVE:
            argument |= {"pass": "native_format", "value": 0}
        case _:
            argument["value"] = values[param.name]
            argument["host"] = False
    return argument


def _place(
    function: Function,
    param: Param,
    case: Case,
    values: Values,
    expected: dict[str, Any],
    buffers: list[Buffer],
) -> int | None:
    before = None if overwritten(function, param) else values.get(param.name)
    after = expected.get(param.name)
    if case.view == "aliased" and param.role == "in" and (twin := _twin(before, buffers)) is not None:
        return twin
    if param.role == "in" or (param.role == "inout" and values.get(param.name) is None):
        return None if before is None else _add(param, param.name, case, before, None, buffers)
    if param.role == "out" and param.optional and case.change == "partial" and not _sole(function, param):
        return None
    if after is None:
        if param.optional:
            return None
        raise UnsoundCase(f"the reference does not give '{param.name}'")
    if after is SCRATCH:
        if before is None and param.optional and param.name not in case.values:
            return None
        if before is None:  # an output that holds intermediate results, of the size that the row gives
            before = np.full(case.values[param.name], np.nan)
        place = _add(param, param.name, case, before, None, buffers)
        buffers[place].scratch = True
        return place
    return _add(param, param.name, case, before, after, buffers)


def _twin(before: Array | None, buffers: list[Buffer]) -> int | None:
    """The buffer that holds the very same values already."""
    if before is None:
        return None
    return next((i for i, b in enumerate(buffers) if b.source is before), None)


def _sole(function: Function, param: Param) -> bool:
    """Whether a call without this output would have none: the first stays then."""
    outs = [p for p in function.params if p.role == "out"]
    return all(p.optional for p in outs) and param is outs[0]


def overwritten(function: Function, param: Param) -> bool:
    """Whether a random function replaces all of a tensor whatever it holds; it then starts as an output does."""
    read = param.name == "input" or param.name in function.data
    return CHECK[function.check].random and param.role == "inout" and not read


def _place_list(
    param: Param, case: Case, values: Values, expected: dict[str, Any], buffers: list[Buffer]
) -> list[int | None]:
    before = values.get(param.name) or []
    after = expected.get(param.name, []) if param.role != "in" else []
    return [
        (None if b is None and a is None else _add(param, f"{param.name}[{i}]", case, b, a, buffers))
        for i, (b, a) in enumerate(_zipped(before, after))
    ]


def _zipped(before: list[Any], after: list[Any]) -> list[tuple[Any, Any]]:
    length = max(len(before), len(after))
    return list(zip(before + [None] * (length - len(before)), after + [None] * (length - len(after)), strict=True))


def _add(param: Param, label: str, case: Case, before: Array | None, after: Array | None, buffers: list[Buffer]) -> int:
    dtype = case.dtypes[param.name]
    shape = before.shape if before is not None else after.shape if after is not None else ()
    if before is not None and after is not None and before.shape != after.shape:
        raise UnsoundCase(f"'{label}' would change its shape from {before.shape} to {after.shape}")
    place = _place_for(param, case, tuple(shape), before)
    if case.view == "strided":
        place = _spread(place, crc32(case.id.encode()) + len(buffers))
    words = np.frombuffer(
        bytes(
            [_poison(after, dtype, case.seed) if after is not None or before is None else _GAPS[case.seed % len(_GAPS)]]
        )
        * (place.elements * storage_dtype(dtype).itemsize),
        storage_dtype(dtype),
    ).copy()
    if before is not None:
        words[place.positions().reshape(-1)] = encode(before, dtype).reshape(-1)
    buffers.append(
        Buffer(param=param, label=label, dtype=dtype, layout=place, before=words, expected=after, source=before)
    )
    return len(buffers) - 1


def _spread(place: Layout, turn: int) -> Layout:
    """Each tensor of a call by steps of its own, one of four dense, so that none can be taken for another's."""
    steps = turn % 4
    dense = Layout(sizes=place.sizes, strides=row_major(place.sizes), offset=0, elements=prod(place.sizes))
    return spread(place, steps) if steps else dense


def _place_for(param: Param, case: Case, shape: Sizes, before: Array | None) -> Layout:
    """Where a tensor lies; not in a view that shares elements if they differ, as what a forward function gave may."""
    place = layout(case.view, shape, writable=param.role != "in" or before is None, order=case.layout)
    if before is None or place.elements >= before.size:
        return place
    stored = np.empty(place.elements, before.dtype)
    stored[place.positions()] = before
    if np.array_equal(stored[place.positions()], before, equal_nan=True):
        return place
    return layout(case.view, shape, writable=True, order=case.layout)


def _poison(expected: Array | None, dtype: str, seed: int) -> int:
    """A byte whose repetition is no expected element, so that an output left alone cannot be right."""
    first = seed % len(_POISONS)
    poisons = _POISONS[first:] + _POISONS[:first]
    if expected is None:
        return poisons[0]
    words = encode(expected, dtype)
    counts = [np.count_nonzero(words == np.frombuffer(bytes([p]) * words.itemsize, words.dtype)) for p in poisons]
    return poisons[int(np.argmin(counts))]


def facts(plan: CasePlan, buffer: Buffer) -> dict[str, Any]:
    return {
        "sizes": list(buffer.layout.sizes),
        "strides": list(buffer.layout.strides),
        "offset": buffer.layout.offset,
        "elements": buffer.layout.elements,
        "dtype": plan.dtypes[buffer.dtype][0],
        "bytes": buffer.before.nbytes,
    }
