"""One entry of OpInfo at one dtype: every sample forward, backward, in place and with out=, device against CPU."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from op_tools.torch_tests.coverage.calls import CallCoverage
from op_tools.torch_tests.opinfo.rounded import Rounded
from op_tools.torch_tests.opinfo.samples import (
    SampleCall,
    call_of,
    cotangents,
    difference,
    floating,
    gradients,
    like,
    tensors_of,
    wide,
    with_input,
)

# Their values are whatever the memory held.
UNINITIALIZED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
# Operators that want further tensors on the CPU.
HOST_ARGUMENTS = {"tensor_split"}
# Entries whose results after the first are only kept for a gradient: each device keeps what it likes.
FIRST_RESULT_ONLY = {
    "native_batch_norm",
    "_native_batch_norm_legit",
    "_batch_norm_with_update",
    "native_layer_norm",
}
# Entries that give positions of elements, of which equal ones may stand for each other: where `dim` stands in the call.
POSITIONS = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1, "median": 0, "nanmedian": 0, "mode": 0}
_SHOWN = 3  # failures of one entry that are kept in full


@dataclass(slots=True)
class Checks:
    """What one entry at one dtype came to."""

    samples: int = 0
    checks: int = 0
    failed: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)  # the first few
    fallbacks: Counter[str] = field(default_factory=Counter)  # e.g. "aten::special_i1.out (no kernel)"; of dipu only
    calls: CallCoverage | None = None  # of every operator that the samples reach, if that is asked for

    def add(self, mode: str, sample: Any, fault: str | None) -> None:
        """A check of a sample, e.g. "backward", with what it found."""
        self.checks += 1
        if fault is None:
            return
        self.failed += 1
        if len(self.failures) < _SHOWN:
            self.failures.append({"mode": mode, "sample": sample.summary()[:400], "fault": fault[:600]})

    def outcome(self) -> dict[str, Any]:
        """As plain data: "outcome", its "reason", and under "details" the counts."""
        details = {
            "samples": self.samples,
            "checks": self.checks,
            "failed": self.failed,
            "failures": self.failures,
            "fallbacks": dict(sorted(self.fallbacks.items())),
        }
        if self.calls is not None:
            details["calls"] = self.calls.as_data()
        if not self.checks:
            reason = "the CPU runs none of the samples" if self.samples else "the CPU can make no sample"
            return {"outcome": "skipped", "reason": reason, "details": details}
        if not self.failed:
            return {"outcome": "passed", "details": details}
        first = self.failures[0]
        reason = f"{first['mode']}: {first['fault']} ({self.failed} of {self.checks} checks fail)"
        return {"outcome": "failed", "reason": reason, "details": details}


def check_entry(entry: Any, dtype: torch.dtype, device: str, coverage: bool = False) -> Checks:
    """Runs every sample on the device; with `coverage` each operator by itself is compared with the CPU, too."""
    found = Checks(calls=CallCoverage(device) if coverage else None)
    backward = bool(entry.supports_autograd) and dtype in entry.supported_backward_dtypes("cpu")
    ledger = torch.get_device_module(device).fallback if device == "dipu" else None
    torch.manual_seed(0)
    with warnings.catch_warnings(), found.calls or nullcontext():
        warnings.simplefilter("ignore")
        for sample in _samples(entry, dtype, backward):
            found.samples += 1
            if ledger is not None:
                ledger.reset()
            failed = found.failed
            for mode, fault in _faults(entry, sample, backward, device):
                found.add(mode, sample, fault)
            if found.calls is not None:  # which runs operators of its own beside those of the sample
                found.fallbacks += found.calls.end_sample(found.failed > failed)
                continue
            for row in () if ledger is None else ledger.report():
                found.fallbacks[f"{row.operator} ({row.cause})"] += row.count
    return found


def _samples(entry: Any, dtype: torch.dtype, backward: bool) -> Iterator[Any]:
    try:
        yield from entry.sample_inputs("cpu", dtype, requires_grad=backward)
    except (RuntimeError, NotImplementedError, TypeError):
        return  # the CPU cannot make the sample


def _faults(entry: Any, sample: Any, backward: bool, device: str) -> Iterator[tuple[str, str | None]]:
    """Each check of one sample with what it found; nothing where the CPU itself fails."""
    values = _is_repeatable(entry, sample)
    if values is None:
        return
    reference, ours = call_of(sample, "cpu"), call_of(sample, device, entry.name in HOST_ARGUMENTS)
    expected = reference.run(entry.op)
    actual, fault = _attempt(lambda: ours.run(entry.op))
    yield "forward", fault or _judged(entry, sample, actual, expected, values, lambda call: call.run(entry.op))
    ties = entry.name in (*POSITIONS, "msort") and sample.input.dtype in (torch.float16, torch.bfloat16)
    if fault is None and backward and values and not ties:
        yield from _backward(entry, sample, reference, ours, expected, actual)
    if fault is None and values:
        yield from _inplace(entry, sample, device)
        yield from _out(entry, sample, expected, device)


class Randomness(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notices an operator that draws random numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen = False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen |= torch.Tag.nondeterministic_seeded in function.tags
        return function(*args, **(kwargs or {}))


def _is_repeatable(entry: Any, sample: Any) -> bool | None:
    """Whether the operator draws no random numbers; None where the CPU fails."""
    if entry.name in UNINITIALIZED:
        return False
    with Randomness() as randomness:
        _, fault = _attempt(lambda: call_of(sample, "cpu").run(entry.op))
    return None if fault is not None else not randomness.seen


def _judged(
    entry: Any, sample: Any, actual: Any, expected: Any, values: bool, run: Callable[[SampleCall], Any]
) -> str | None:
    """The difference from the CPU, unless the device is as near to what float64 gives, or to what the same operators
    give if each computes in float64 and rounds once: where numbers cancel, both err, the CPU's halves at times more.
    """
    if entry.name in FIRST_RESULT_ONLY and isinstance(actual, tuple):
        actual, expected = actual[:1], expected[:1]
    if entry.name in POSITIONS:
        actual, expected = (at_positions(entry.name, sample, result) for result in (actual, expected))
    fault = difference(actual, expected, values)
    if fault is None or not values:
        return fault
    for reference in (lambda: run(wide(sample)), lambda: _rounded_run(sample, run)):
        exact, refused = _attempt(reference)
        if refused is None and difference(actual, like(exact, expected), True) is None:
            return None
    return fault


def _rounded_run(sample: Any, run: Callable[[SampleCall], Any]) -> Any:
    with Rounded():  # type: ignore[no-untyped-call]
        return run(call_of(sample, "cpu"))


def at_positions(name: str, sample: Any, result: Any) -> Any:
    """The result with the elements that positions name in place of the positions."""
    place = POSITIONS[name]
    dim = sample.kwargs.get("dim", sample.args[place] if len(sample.args) > place else -1)
    if sample.kwargs.get("stable") or not isinstance(dim, int):
        return result

    def shown(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype != torch.int64 or value.numel() == 0:
            return value
        source = sample.input.detach()
        index = value.detach().cpu()
        lost = source.dim() > index.dim()
        return source.gather(dim, index.unsqueeze(dim) if lost else index) if source.dim() else source

    if isinstance(result, torch.Tensor):
        return shown(result) if name == "argsort" else result
    if not isinstance(result, tuple) or len(result) != 2:
        return result
    values, indices = result
    return values, shown(indices)


def _attempt(run: Callable[[], Any]) -> tuple[Any, str | None]:
    try:
        return run(), None
    except Exception as error:
        text = str(error).splitlines()
        return None, f"{type(error).__name__}: {text[0] if text else ''}"


def _backward(
    entry: Any, sample: Any, reference: SampleCall, ours: SampleCall, expected: Any, actual: Any
) -> Iterator[tuple[str, str | None]]:
    process = sample.output_process_fn_grad
    outputs = floating(process(expected))
    leaves = reference.leaves()
    if not outputs or not leaves:
        return
    weights = cotangents(outputs)
    wanted, refused = _attempt(lambda: gradients(outputs, leaves, weights))
    if refused is not None:
        return
    found, fault = _attempt(lambda: gradients(floating(process(actual)), ours.leaves(), weights))

    def gradients_of(call: SampleCall) -> list[Any]:
        return gradients(floating(process(call.run(entry.op))), call.leaves(), weights)

    yield "backward", fault or _judged(entry, sample, found, wanted, True, gradients_of)


def _inplace(entry: Any, sample: Any, device: str) -> Iterator[tuple[str, str | None]]:
    variant = entry.get_inplace()
    if variant is None or sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
        return

    def written(call: SampleCall, where: str) -> tuple[torch.Tensor, str | None]:
        target = call.input.detach().clone()
        with torch.no_grad():
            result, fault = _attempt(lambda: with_input(call, target).run(variant))
        if fault is None and isinstance(result, torch.Tensor) and result.data_ptr() != target.data_ptr():
            fault = "the result is not the tensor itself"
        return target, fault

    yield from _written(entry, sample, device, written, "inplace")


def _out(entry: Any, sample: Any, expected: Any, device: str) -> Iterator[tuple[str, str | None]]:
    single = isinstance(expected, torch.Tensor)
    several = isinstance(expected, tuple) and all(isinstance(e, torch.Tensor) for e in expected)
    if not entry.supports_out or not (single or several):
        return
    exact = call_of(sample, "cpu")

    def written(call: SampleCall, where: str) -> tuple[Any, str | None]:
        model = expected if _same_dtypes(call, exact) else wide(sample).run(entry.op)
        outs = tree_map(lambda e: torch.zeros_like(e, device=where), model)
        outs = outs if single else tuple(outs)
        with torch.no_grad():
            _, fault = _attempt(lambda: call.run(entry.op, out=outs))
        return outs, fault

    yield from _written(entry, sample, device, written, "out")


def _same_dtypes(first: SampleCall, second: SampleCall) -> bool:
    return [t.dtype for t in tensors_of(first)] == [t.dtype for t in tensors_of(second)]


def _written(
    entry: Any, sample: Any, device: str, written: Callable[[SampleCall, str], tuple[Any, str | None]], mode: str
) -> Iterator[tuple[str, str | None]]:
    """What the operator wrote on the device against what it wrote on the CPU; nothing where the CPU refuses."""
    wanted, refused = written(call_of(sample, "cpu"), "cpu")
    if refused is not None:
        return
    found, fault = written(call_of(sample, device, entry.name in HOST_ARGUMENTS), device)
    yield mode, fault or _judged(entry, sample, found, wanted, True, lambda call: _unless(written(call, "cpu")))


def _unless(result: tuple[Any, str | None]) -> Any:
    value, fault = result
    if fault is not None:
        raise RuntimeError(fault)
    return value
