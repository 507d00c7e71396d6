"""Judges a reply: status, shapes, types, every element, and that nothing else was touched."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from diopi_conformance.cases.plan import CasePlan
from diopi_conformance.expected.expectations import SCRATCH
from diopi_conformance.judgement.checks import special_check
from diopi_conformance.judgement.closeness import Output, compared
from diopi_conformance.judgement.fault import Closeness, Fault
from diopi_conformance.judgement.measured import Measured, magnitude
from diopi_conformance.judgement.randomness import random_faults
from diopi_conformance.judgement.second_call import both_calls
from diopi_conformance.judgement.tolerance import Tolerance, tolerance
from diopi_conformance.outcome import NOT_IMPLEMENTED, Outcome, Verdict
from diopi_conformance.prepare import Buffer, Prepared
from diopi_conformance.process.wire import ON_OTHER_BYTES, UNWRITTEN
from diopi_conformance.values.elements import Array, decode, rows_of_bytes, storage_dtype
from diopi_conformance.values.views import Layout
from diopigen.vocabulary.checks import CHECK

_SINGULAR = {
    "bytes": "byte",
    "device bytes": "device byte",
    "files": "file",
    "processes": "process",
    "threads": "thread",
}
_HOST = {"bool*": np.uint8, "double*": np.float64, "float*": np.float32, "int64*": np.int64}


def judge(plan: CasePlan, prepared: Prepared, head: dict[str, Any], blobs: list[bytes]) -> Outcome:
    """The outcome of one call."""
    blobs, second = both_calls(prepared, head, blobs)
    verdict, found = _verdict(plan, prepared, head, blobs, Measured(prepared))
    if verdict is Verdict.PASS and second is not None:
        again, fault_then = _verdict(plan, second.prepared, second.head, second.blobs, Measured(prepared))
        if isinstance(fault_then, Fault):
            verdict, found = again, replace(fault_then, message=f"{ON_OTHER_BYTES}: {fault_then.message}")
    fault = found if isinstance(found, Fault) else None
    return Outcome(
        id=prepared.case.id,
        function=prepared.function.symbol,
        op=prepared.function.op,
        verdict=verdict,
        trivial=trivial(plan, prepared),
        message=fault.message if fault else "",
        output=fault.output if fault else "",
        index=fault.index if fault else (),
        error=found.error,
        ulp=found.ulp,
        memory=head.get("memory", 0),
        seconds=head.get("seconds", 0.0),
    )


def trivial(plan: CasePlan, prepared: Prepared) -> bool:
    """Whether a library that does nothing is right here: outputs without elements, or inputs that need no change."""
    if any(p.role in ("new", "host") for p in prepared.function.params):
        return False
    if any(b.param.role == "out" and b.layout.positions().size for b in prepared.buffers):
        return False
    idle = {"outcome": "returned", "status": 0, "synchronized": True, "damaged": [], "scratch_damaged": False}
    return _verdict(plan, prepared, idle, prepared.blobs, None)[0] is Verdict.PASS


def _verdict(
    plan: CasePlan, prepared: Prepared, head: dict[str, Any], blobs: list[bytes], measured: Measured | None
) -> tuple[Verdict, Fault | Closeness]:
    match head["outcome"]:
        case "missing":
            return Verdict.NOT_IMPLEMENTED, Fault(message="the library has no such function")
        case "crash":
            return Verdict.CRASH, Fault(message=head["error"])
        case "timeout":
            return Verdict.TIMEOUT, Fault(message=head["error"])
        case "runtime-error":
            return Verdict.FAIL, Fault(message=f"the test runtime failed: {head['error']}")
    if head["status"] in NOT_IMPLEMENTED and head["synchronized"]:
        return Verdict.NOT_IMPLEMENTED, Fault(message=head["error"] or f"status {head['status']}")
    if head["status"] != 0 or not head["synchronized"]:
        what = f"status {head['status']}" if head["status"] else "the device failed"
        return Verdict.FAIL, Fault(message=f"{what}: {head['error']}" if head["error"] else what)
    outputs: list[Closeness] = []
    for found in _faults(plan, prepared, head, blobs, measured):
        if isinstance(found, Fault):
            return Verdict.FAIL, found
        outputs.append(found)
    if changed := head.get("changed"):
        return Verdict.FAIL, Fault(message=f"the call changes {' and '.join(changed)} of its process")
    if left := head.get("leaks"):
        things = ", ".join(f"{count} {what if count != 1 else _SINGULAR[what]}" for what, count in left.items())
        return Verdict.LEAK, Fault(message=f"each call leaves behind {things}")
    steps = [o.ulp for o in outputs if o.ulp is not None]
    return Verdict.PASS, Closeness(error=max((o.error for o in outputs), default=0.0), ulp=max(steps, default=None))


def _faults(
    plan: CasePlan, prepared: Prepared, head: dict[str, Any], blobs: list[bytes], measured: Measured | None
) -> Iterator[Fault | Closeness]:
    """What is wrong, worst kind first, and how close the outputs are that are right."""
    buffers = prepared.buffers
    for index in head["damaged"]:
        yield Fault(message=f"bytes around '{buffers[index].label}' were overwritten", output=buffers[index].label)
    if head["scratch_damaged"]:
        yield Fault(message="bytes around a temporary tensor were overwritten")
    made = blobs[len(buffers) : len(buffers) + len(prepared.slots)]
    after = [np.frombuffer(blob, b.before.dtype) for b, blob in zip(buffers, blobs, strict=False)]
    for buffer, words in zip(buffers, after, strict=True):
        yield from _untouched(buffer, words)
    actual: dict[str, Any] = {}
    for buffer, words in zip(buffers, after, strict=True):
        if buffer.expected is not None:
            found = words[buffer.layout.positions()]
            if buffer.dtype == "bool" and found.size and found.max() > 1:
                yield Fault(message=f"'{buffer.label}' holds bytes that are neither 0 nor 1", output=buffer.label)
            actual[buffer.label] = decode(found, buffer.dtype)
    yield from _made(plan, prepared, head, made, actual)
    yield from _host(prepared, head, measured)
    if CHECK[prepared.function.check].random:
        yield from random_faults(prepared, actual, head, blobs[len(buffers) + len(made) :])
    else:
        yield from _elements(prepared, actual, measured)


def _untouched(buffer: Buffer, words: Array) -> Iterator[Fault]:
    """Inputs stay as they were; of outputs everything outside the view does."""
    if buffer.scratch:
        return
    changed = (rows_of_bytes(words) != rows_of_bytes(buffer.before)).any(axis=1)
    if buffer.expected is not None:
        changed[buffer.layout.positions().reshape(-1)] = False
    if changed.any():
        what = "was changed" if buffer.expected is None else "was written outside of its view"
        at = int(np.argmax(changed))
        yield Fault(message=f"'{buffer.label}' {what}, at storage element {at}", output=buffer.label, index=(at,))


def _made(
    plan: CasePlan, prepared: Prepared, head: dict[str, Any], blobs: list[bytes], actual: dict[str, Any]
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
            place = Layout(
                sizes=expected.shape,
                strides=tuple(facts["strides"]),
                offset=facts["offset"],
                elements=words.size,
            )
            positions = place.positions()
            if positions.size and not 0 <= positions.min() <= positions.max() < words.size:
                message = (
                    f"'{label}' reaches beyond its storage of {words.size} elements, with strides {facts['strides']}"
                )
                yield Fault(message=message, output=label)
            elif np.unique(positions).size < positions.size:
                message = f"elements of '{label}' share memory, with strides {facts['strides']}"
                yield Fault(message=message, output=label)
            else:
                actual[label] = decode(words[positions], dtype)


def _strides_fit(promised: tuple[int, ...] | None, found: list[int], sizes: tuple[int, ...]) -> bool:
    """Strides of dimensions of one element say nothing, nor do any where there is no element."""
    if promised is None or 0 in sizes:
        return True
    return all(a == b or size == 1 for a, b, size in zip(promised, found, sizes, strict=True))


def _host(prepared: Prepared, head: dict[str, Any], measured: Measured | None) -> Iterator[Fault]:
    params = [p for p in prepared.function.params if p.role == "host"]
    for param, text in zip(params, head.get("host", []), strict=True):
        value = np.frombuffer(bytes.fromhex(text), _HOST[param.passing])[0]
        if prepared.expected[param.name] is SCRATCH:
            if set(bytes.fromhex(text)) == {UNWRITTEN}:
                yield Fault(message=f"'{param.name}' was not written", output=param.name)
            continue
        expected = np.asarray(prepared.expected[param.name]).reshape(()).item()
        if not _same_number(prepared, param.name, value, expected, measured):
            yield Fault(message=f"'{param.name}' is {value}, expected {expected}", output=param.name)


def _same_number(prepared: Prepared, name: str, value: Any, expected: Any, measured: Measured | None) -> bool:
    """Whole numbers are the same or not; a fraction is as exact as the tensors that it was made of."""
    if not isinstance(expected, float):
        return bool(value == expected)
    bound = tolerance(prepared.function, prepared.case, next(iter(prepared.case.dtypes.values())))
    output = Output(label=name, dtype="f64", actual=np.array(float(value)), exact=np.array(expected))
    return isinstance(compared(output, bound, measured.of(output) if measured else None), Closeness)


def _elements(prepared: Prepared, actual: dict[str, Any], measured: Measured | None) -> Iterator[Fault | Closeness]:
    special = special_check(prepared.function)
    if special is not None:
        skipped, message = special(prepared, actual)
        if message:
            yield Fault(message=message)
    else:
        skipped = ()
    inputs = {name: v for name, v in prepared.values.items() if isinstance(v, np.ndarray)}
    for buffer in prepared.buffers:
        if buffer.expected is not None and buffer.label not in skipped:
            before = buffer.before[buffer.layout.positions()]
            output = Output(
                label=buffer.label,
                dtype=buffer.dtype,
                actual=actual[buffer.label],
                exact=buffer.expected,
                before=decode(before, buffer.dtype),
                inputs=inputs,
            )
            yield _judged(prepared, output, measured)
    for slot in prepared.slots:
        if slot.expected is not None and slot.label not in skipped:
            output = Output(
                label=slot.label, dtype=slot.dtype, actual=actual[slot.label], exact=slot.expected, inputs=inputs
            )
            yield _judged(prepared, output, measured)


def _judged(prepared: Prepared, output: Output, measured: Measured | None) -> Fault | Closeness:
    return compared(output, _tolerance(prepared, output), measured.of(output) if measured else None)


def _tolerance(prepared: Prepared, output: Output) -> Tolerance:
    bound = tolerance(prepared.function, prepared.case, output.dtype)
    if bound.pair is not None and prepared.case.fill == "large":
        relative, absolute = bound.pair
        return replace(bound, pair=(relative, absolute * magnitude(output.exact)))
    return bound


def bounds(prepared: Prepared, output: Output) -> Array:
    """How far each element of a float output may be away from the exact one, for those who judge elsewhere."""
    bound = _tolerance(prepared, output)
    near = bound.near(output.exact)
    return np.maximum(near, bound.wide(output.exact, Measured(prepared).of(output)())) if bound.measured else near
