"""Judges a reply: status, shapes, types, every element, and that nothing else was touched."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_conformance.checks import special_check
from diopi_conformance.elements import Array, decode, rounded, storage_dtype
from diopi_conformance.outcome import NOT_IMPLEMENTED, Outcome, Verdict
from diopi_conformance.plan import Plan
from diopi_conformance.prepare import Buffer, Prepared

# relative, absolute; by the output's type
_TOLERANCES = {
    "f16": (2e-3, 1e-3),
    "bf16": (1.6e-2, 8e-3),
    "f32": (1e-5, 1e-5),
    "f64": (1e-9, 1e-9),
    "c64": (1e-5, 1e-5),
    "c128": (1e-9, 1e-9),
}

_HOST = {"bool*": np.uint8, "double*": np.float64, "float*": np.float32, "int64*": np.int64}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The first thing that is wrong."""

    message: str
    output: str = ""
    index: tuple[int, ...] = ()
    error: float | None = None


def judge(plan: Plan, prepared: Prepared, head: dict[str, Any], blobs: list[bytes]) -> Outcome:
    """The outcome of one call."""
    verdict, fault, error = _verdict(plan, prepared, head, blobs)
    return Outcome(
        id=prepared.case.id,
        function=prepared.function.symbol,
        op=prepared.function.op,
        verdict=verdict,
        trivial=trivial(plan, prepared),
        message=fault.message if fault else "",
        output=fault.output if fault else "",
        index=fault.index if fault else (),
        error=fault.error if fault and fault.error is not None else error,
        seconds=head.get("seconds", 0.0),
    )


def trivial(plan: Plan, prepared: Prepared) -> bool:
    """Whether a library that does nothing is right here: outputs without elements, or inputs that need no change."""
    if any(p.role in ("new", "host") for p in prepared.function.params):
        return False
    if any(b.param.role == "out" and b.layout.positions().size for b in prepared.buffers):
        return False
    idle = {"outcome": "returned", "status": 0, "synchronized": True, "damaged": [], "scratch_damaged": False}
    return _verdict(plan, prepared, idle, prepared.blobs)[0] is Verdict.PASS


def _verdict(
    plan: Plan, prepared: Prepared, head: dict[str, Any], blobs: list[bytes]
) -> tuple[Verdict, Fault | None, float | None]:
    match head["outcome"]:
        case "missing":
            return Verdict.NOT_IMPLEMENTED, Fault(message="the library has no such function"), None
        case "crash":
            return Verdict.CRASH, Fault(message=head["error"]), None
        case "timeout":
            return Verdict.TIMEOUT, Fault(message=head["error"]), None
        case "runtime-error":
            return Verdict.FAIL, Fault(message=f"the test runtime failed: {head['error']}"), None
    if head["status"] in NOT_IMPLEMENTED and head["synchronized"]:
        return Verdict.NOT_IMPLEMENTED, Fault(message=head["error"] or f"status {head['status']}"), None
    if head["status"] != 0 or not head["synchronized"]:
        what = f"status {head['status']}" if head["status"] else "the device failed"
        return Verdict.FAIL, Fault(message=f"{what}: {head['error']}" if head["error"] else what), None
    worst = 0.0
    for fault in _faults(plan, prepared, head, blobs):
        if fault.message:
            return Verdict.FAIL, fault, None
        worst = max(worst, fault.error or 0.0)
    return Verdict.PASS, None, worst


def _faults(plan: Plan, prepared: Prepared, head: dict[str, Any], blobs: list[bytes]) -> Iterator[Fault]:
    """What is wrong, worst kind first; a fault without a message only tells the error of a good output."""
    buffers = prepared.buffers
    for index in head["damaged"]:
        yield Fault(message=f"bytes around '{buffers[index].label}' were overwritten", output=buffers[index].label)
    if head["scratch_damaged"]:
        yield Fault(message="bytes around a temporary tensor were overwritten")
    after = [np.frombuffer(blob, b.before.dtype) for b, blob in zip(buffers, blobs, strict=False)]
    for buffer, words in zip(buffers, after, strict=True):
        yield from _untouched(buffer, words)
    actual: dict[str, Any] = {}
    for buffer, words in zip(buffers, after, strict=True):
        if buffer.expected is not None:
            found = words[buffer.layout.positions().reshape(-1)].reshape(buffer.layout.sizes)
            if buffer.dtype == "bool" and found.size and found.max() > 1:
                yield Fault(message=f"'{buffer.label}' holds bytes that are neither 0 nor 1", output=buffer.label)
            actual[buffer.label] = decode(found, buffer.dtype)
    yield from _made(plan, prepared, head, blobs[len(buffers) :], actual)
    yield from _host(prepared, head, actual)
    yield from _elements(prepared, actual)


def _untouched(buffer: Buffer, words: Array) -> Iterator[Fault]:
    """Inputs stay as they were; of outputs everything outside the view does."""
    if buffer.scratch:
        return
    changed = words.view(_bits(words)) != buffer.before.view(_bits(words))
    if buffer.expected is not None:
        changed[buffer.layout.positions().reshape(-1)] = False
    if changed.any():
        what = "was changed" if buffer.expected is None else "was written outside of its view"
        at = int(np.argmax(changed))
        yield Fault(message=f"'{buffer.label}' {what}, at storage element {at}", output=buffer.label, index=(at,))


def _bits(words: Array) -> Any:
    return {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}[words.itemsize]


def _made(
    plan: Plan, prepared: Prepared, head: dict[str, Any], blobs: list[bytes], actual: dict[str, Any]
) -> Iterator[Fault]:
    """Tensors that the function allocated: their type and shape are its answer too."""
    for slot, facts, blob in zip(prepared.slots, head.get("new", []), blobs, strict=True):
        label, expected = slot.label, slot.expected
        if facts is None:
            if expected is not None or not slot.param.optional:
                yield Fault(message=f"'{label}' was not allocated", output=label)
            continue
        if expected is None:
            yield Fault(message=f"'{label}' was allocated, but nobody asked for it", output=label)
            continue
        dtype = plan.dtype_name(facts["dtype"])
        if dtype != slot.dtype:
            yield Fault(message=f"'{label}' is of type {dtype}, expected {slot.dtype}", output=label)
        elif tuple(facts["sizes"]) != expected.shape:
            message = f"'{label}' has shape {tuple(facts['sizes'])}, expected {expected.shape}"
            yield Fault(message=message, output=label)
        elif not _strides_fit(prepared.strides.get(label), facts["strides"], expected.shape):
            message = f"'{label}' has strides {facts['strides']}, expected {prepared.strides[label]}"
            yield Fault(message=message, output=label)
        else:
            words = np.frombuffer(blob, storage_dtype(dtype))
            strides = [s * words.itemsize for s in facts["strides"]]
            view = np.lib.stride_tricks.as_strided(words[facts["offset"] :], expected.shape, strides)
            actual[label] = decode(view, dtype)


def _strides_fit(promised: tuple[int, ...] | None, found: list[int], sizes: tuple[int, ...]) -> bool:
    """Strides of dimensions of one element say nothing, nor do any where there is no element."""
    if promised is None or 0 in sizes:
        return True
    return all(a == b or size == 1 for a, b, size in zip(promised, found, sizes, strict=True))


def _host(prepared: Prepared, head: dict[str, Any], actual: dict[str, Any]) -> Iterator[Fault]:
    params = [p for p in prepared.function.params if p.role == "host"]
    for param, text in zip(params, head.get("host", []), strict=True):
        value = np.frombuffer(bytes.fromhex(text), _HOST[param.passing])[0]
        expected = np.asarray(prepared.expected[param.name]).reshape(()).item()
        if not _same_number(prepared, value, expected):
            yield Fault(message=f"'{param.name}' is {value}, expected {expected}", output=param.name)


def _same_number(prepared: Prepared, value: Any, expected: Any) -> bool:
    """Whole numbers are the same or not; a fraction is as exact as the tensors that it was made of."""
    if not isinstance(expected, float):
        return bool(value == expected)
    relative, absolute = tolerance(prepared, next(iter(prepared.case.dtypes.values())))
    return bool(np.isclose(value, expected, relative, absolute, equal_nan=True))


def _elements(prepared: Prepared, actual: dict[str, Any]) -> Iterator[Fault]:
    special = special_check(prepared.function)
    if special is not None:
        skipped, message = special(prepared, actual)
        if message:
            yield Fault(message=message)
    else:
        skipped = ()
    expected = {b.label: (b.expected, b.dtype) for b in prepared.buffers if b.expected is not None}
    expected.update({slot.label: (slot.expected, slot.dtype) for slot in prepared.slots if slot.expected is not None})
    for label, (values, dtype) in expected.items():
        if label not in skipped:
            relative, absolute = tolerance(prepared, dtype)
            if prepared.case.fill == "large":
                absolute *= _magnitude(values)
            yield from _close(label, actual[label], rounded(values, dtype), relative, absolute)


def _magnitude(values: Array) -> float:
    """The largest finite element, or 1: what sums of large values may lose grows with them."""
    finite = np.abs(np.where(np.isfinite(values), values, 0.0))
    return max(1.0, float(finite.max(initial=0.0)))


def tolerance(prepared: Prepared, dtype: str) -> tuple[float, float]:
    """Relative and absolute, of the coarsest dtype on the way; the schema's where it says one.

    Gradients are sums even where the forward only copies.
    """
    if prepared.function.check == "exact" and prepared.function.form != "backward":
        return 0.0, 0.0
    pairs = [prepared.function.tolerance.get(d) or _TOLERANCES.get(d, (0.0, 0.0)) for d in _computed(prepared, dtype)]
    relative, absolute = (max(pair) for pair in zip(*pairs, strict=True))
    if dtype == "f64" and any(p.passing == "float" for p in prepared.function.params):
        return max(relative, 1e-6), max(absolute, 1e-6)  # what comes in as float32 cannot give more
    return relative, absolute


def _computed(prepared: Prepared, dtype: str) -> set[str]:
    """The dtypes that a result of `dtype` passes through: none can be more exact than the coarsest allows."""
    params = (p for p in prepared.function.params if prepared.case.dtypes.get(p.name) == dtype)
    return {dtype, *(p.computed(dtype) for p in params)}


def _close(label: str, actual: Array, expected: Array, relative: float, absolute: float) -> Iterator[Fault]:
    if actual.size == 0:
        return
    if not (is_inexact := np.issubdtype(expected.dtype, np.inexact)):
        wrong = actual != expected
        error = wrong.astype(np.float64)
        if expected.dtype != np.bool_:
            error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    else:
        with np.errstate(invalid="ignore"):
            error = np.abs(actual - expected)
            same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
            error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
            bound = absolute + relative * np.where(np.isfinite(expected), np.abs(expected), 0.0)
            wrong = error > bound
    if not wrong.any():
        yield Fault(message="", output=label, error=float(error.max()))
        return
    flat = int(np.argmax(np.where(wrong, error if is_inexact else wrong, 0)))
    index = tuple(int(i) for i in np.unravel_index(flat, expected.shape))
    place = f"{label}{list(index)}" if index else label
    count = int(np.count_nonzero(wrong))
    yield Fault(
        message=f"{place} is {actual[index]}, expected {expected[index]} ({count} of {expected.size} are wrong)",
        output=label,
        index=index,
        error=float(error.reshape(-1)[flat]),
    )
