"""From a case to one call: inputs drawn, outputs expected, storages laid out and poisoned."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from math import prod
from typing import Any
from zlib import crc32

import numpy as np

from diopi_conformance.cases.plan import Case, Function, Param, Plan
from diopi_conformance.expected.expectations import SCRATCH, Expectations
from diopi_conformance.judgement.tolerance import Terms
from diopi_conformance.values.draw import parse_recipe
from diopi_conformance.values.elements import Array, encode, rounded, storage_dtype
from diopi_conformance.values.inputs import UnsoundCase, Values, as_computed, draw_inputs, drawn, plain_value
from diopi_conformance.values.related import related_inputs
from diopi_conformance.values.views import Layout, Sizes, layout, row_major, spread

# By the seed of the run. Between and around the elements of an input: NaN, or huge, so that reading there shows.
_GAPS = (0xFF, 0x7F, 0xFE)
_SAMPLE = 16384  # numbers that tell a distribution from others
_POISONS = (0xCB, 0x5A, 0x93, 0x77, 0x2D)  # in outputs
NATIVE = "native"  # in place of a vendor's number of a memory format: that of the first tensor
_WHOLE = {"int32": "i32", "int64": "i64"}


@dataclass(slots=True, kw_only=True)
class Buffer:
    """One tensor of a call: where it lies and what its storage held before."""

    param: Param
    label: str  # ex) "input", "tensors[2]"
    dtype: str
    layout: Layout
    before: Array  # the storage's words
    expected: Array | None  # the values after the call; None for inputs
    source: Array | None  # what was written into the view before; parameters that share it share the tensor
    scratch: bool = False  # the function may leave anything in it


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A handle that the function fills, and the tensor that it should lead to."""

    param: Param
    label: str  # ex) "out", "outlist[1]"
    dtype: str
    expected: Array | None  # None where there should be no tensor


@dataclass(slots=True, kw_only=True)
class Prepared:
    """Everything about one call but the library."""

    case: Case
    function: Function
    values: Values  # numpy, by parameter
    expected: dict[str, Any]  # numpy, by written parameter
    buffers: list[Buffer]
    request: dict[str, Any]
    strides: dict[str, Sizes]  # of tensors that the function allocates in a memory order it was asked for
    terms: Callable[[], dict[str, Terms]]  # of its outputs; it takes a while

    @property
    def blobs(self) -> list[bytes]:
        return [b.before.tobytes() for b in self.buffers]

    @property
    def slots(self) -> list[Slot]:
        """What the function allocates, in the order of its handles; one parameter may have room for several."""
        return [
            slot
            for param in self.function.params
            if param.passing == "tensor*"
            for slot in _slots(param, self.case.dtypes[param.name], self.expected[param.name])
        ]


def _slots(param: Param, dtype: str, expected: Any) -> list[Slot]:
    """Of several tensors behind one parameter only the first has its type for sure: whole numbers have their own."""
    if not isinstance(expected, list):
        return [Slot(param=param, label=param.name, dtype=dtype, expected=expected)]
    return [
        Slot(param=param, label=f"{param.name}[{i}]", dtype=_WHOLE.get(e.dtype.name, dtype), expected=e)
        for i, e in enumerate(expected)
    ]


def prepare(plan: Plan, case: Case, expectations: Expectations | None = None) -> Prepared:
    """The case's call, with results from `expectations`, by default from PyTorch.

    Raises UnsoundCase where the case cannot be run, UnfitCase where the vendor has no dtype for its values.
    """
    source = expectations if expectations is not None else live()
    function = plan.functions[case.function]
    values, forward = _values(plan, function, case, source)
    found = source.outputs(plan, case, values, forward)
    expected = {name: _as_computed(function, case, name, value) for name, value in found.values.items()}
    buffers: list[Buffer] = []
    args = [_argument(function, param, case, values, expected, buffers) for param in function.params]
    return Prepared(
        case=case,
        function=function,
        values=values,
        expected=expected,
        buffers=buffers,
        request={
            "id": case.id,
            "symbol": function.symbol,
            "args": args,
            "tensors": [_facts(plan, buffer) for buffer in buffers],
            **_draws(function, buffers),
        },
        strides=found.strides if any("channels_last" in p.enumerators for p in function.params) else {},
        terms=partial(source.terms, plan, case, values, forward),
    )


def _draws(function: Function, buffers: list[Buffer]) -> dict[str, Any]:
    """Of a random function: which calls are to be made again, more of them where one draw tells little."""
    if function.check != "distribution":
        return {}
    written = [i for i, b in enumerate(buffers) if b.expected is not None]
    size = max((buffers[i].layout.positions().size for i in written), default=0)
    return {"draws": {"next": min(16, max(2, _SAMPLE // max(1, size))), "written": written}}


@cache
def live() -> Expectations:
    """PyTorch; imported here and not above, since what was stored serves without it."""
    from diopi_conformance.expected.live import Live

    return Live()


def _values(plan: Plan, function: Function, case: Case, source: Expectations) -> tuple[Values, Values | None]:
    """What the function reads; for a backward function also what its forward read."""
    if function.form != "backward":
        computed = {p.name: p.computed(case.dtypes[p.name]) for p in function.params if p.name in case.dtypes}
        drawn_values = draw_inputs(function, case, case.dtypes, computed)
        return _related(function, case.dtypes, computed, drawn_values), None
    if not function.plain:
        raise UnsoundCase(f"'{function.symbol}' has no forward function")
    plain = plan.functions[function.plain]
    computed = _forward_computed(function, plain, case)
    forward = _related(plain, case.forward, computed, draw_inputs(plain, case, case.forward, computed))
    outs = source.forward(plan, case, forward)
    made = {n: _as_stored(v, case.forward[n]) for n, v in outs.items() if n in case.forward and v is not SCRATCH}
    values: Values = {}
    for param in function.params:
        if param.role in ("in", "inout") and param.passing != "count":
            value = _backward_value(function, param, case, forward, made)
            kept = function.backward["keeps"].get(param.name) in forward  # computed already, and maybe shared
            values[param.name] = value if kept else _as_computed(function, case, param.name, value)
    return values, forward


def _related(function: Function, dtypes: dict[str, str], computed: dict[str, str], values: Values) -> Values:
    """The inputs, those that must fit others made to."""
    fit = related_inputs(function)
    made = {} if fit is None else fit(values)
    stored = {name: _as_stored(np.asarray(value), dtypes[name]) for name, value in made.items()}
    return values | {name: as_computed(name, value, dtypes[name], computed[name]) for name, value in stored.items()}


def _forward_computed(function: Function, plain: Function, case: Case) -> dict[str, str]:
    """In which dtypes the forward's tensors reach the code: the backward's where it keeps them, else its own."""
    keepers = {source: function.param(name) for name, source in function.backward["keeps"].items() if source}
    params = (p for p in plain.params if p.name in case.forward)
    return {p.name: keepers.get(p.name, p).computed(case.forward[p.name]) for p in params}


def _as_computed(function: Function, case: Case, name: str, value: Any) -> Any:
    """What is left of a tensor of the call that passes through the dtype that the vendor computes in."""
    dtype = case.dtypes.get(name)
    return value if dtype is None else as_computed(name, value, dtype, function.param(name).computed(dtype))


def _as_stored(value: Any, dtype: str) -> Any:
    if isinstance(value, list):
        return [_as_stored(v, dtype) for v in value]
    return value if value is None else rounded(value, dtype)


def _backward_value(function: Function, param: Param, case: Case, forward: Values, made: Values) -> Any:
    sources = function.backward
    if param.name in sources["grad_outputs"]:
        out = made[sources["grad_outputs"][param.name]]
        usual = replace(case, fill="")  # large gradients would enlarge what the forward's outputs lost in rounding
        if isinstance(out, list):
            return [
                drawn(usual, f"{param.name}[{i}]", o.shape, case.dtypes[param.name], None, False)
                for i, o in enumerate(out)
            ]
        text = function.data.get(param.name)
        recipe = parse_recipe(text, case.values, {}) if text else None
        return drawn(usual, param.name, out.shape, case.dtypes[param.name], recipe, False)
    if param.name in sources["keeps"]:
        source = sources["keeps"][param.name]
        if source in forward:
            return forward[source]
        if source in made:
            return made[source]
        if source in case.forward and param.optional:  # working memory, which the backward function makes for itself
            return None
        if source is None and param.name in case.values:
            return case.values[param.name]
        if param.name.removesuffix("_sizes") in forward:  # "input_sizes" is the shape of "input"
            sized = forward[param.name.removesuffix("_sizes")]
            return None if sized is None else list(sized.shape)
        if source is None and not param.is_tensor:
            return _own_value(param, forward)
    if not param.is_tensor:
        return plain_value(param, case)
    if param.optional:
        return None
    raise UnsoundCase(f"nothing gives '{param.name}' of '{function.symbol}'")


def _own_value(param: Param, forward: Values) -> Any:
    """A value that only the backward function has: the sizes of an argument by its name, a flag that is off."""
    if param.name.endswith("_sizes"):
        sized = forward.get(param.name.removesuffix("_sizes"))
        return None if sized is None else list(sized.shape)
    if param.passing == "bool":
        return False
    raise UnsoundCase(f"nothing gives '{param.name}'")


def _argument(
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
    return function.check == "distribution" and param.role == "inout" and not read


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


def _facts(plan: Plan, buffer: Buffer) -> dict[str, Any]:
    return {
        "sizes": list(buffer.layout.sizes),
        "strides": list(buffer.layout.strides),
        "offset": buffer.layout.offset,
        "elements": buffer.layout.elements,
        "dtype": plan.dtypes[buffer.dtype][0],
        "bytes": buffer.before.nbytes,
    }
