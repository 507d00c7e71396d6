"""One entry of OpInfo at one dtype: every sample forward, backward, in place and with out=, device against CPU."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from tools.opinfo.report import empty_result
from tools.opinfo.rounded import Rounded
from tools.opinfo.samples import (
    DEVICE,
    Call,
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


def entries() -> dict[str, Any]:
    """torch's entries by name, ex) "add", "div.floor_rounding"; a second one of a name is "add#2"."""
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, Any] = {}
    for entry in op_db:
        base = f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else str(entry.name)
        count = sum(name.partition("#")[0] == base for name in found) + 1
        found[base if count == 1 else f"{base}#{count}"] = entry
    return found


def dtypes_of(entry: Any, every: bool) -> list[torch.dtype]:
    """float32, or the first dtype of an entry that has none; all that the CPU has where `every` is asked for."""
    known = sorted(entry.supported_dtypes("cpu"), key=str)
    if every:
        return known
    return [torch.float32] if torch.float32 in known else known[:1]


def check_entry(name: str, entry: Any, dtype: torch.dtype) -> dict[str, Any]:
    """Runs every sample. The result is plain data: counts, the first failures, the fallbacks."""
    result = empty_result(name, str(dtype).removeprefix("torch."))
    backward = bool(entry.supports_autograd) and dtype in entry.supported_backward_dtypes("cpu")
    fallbacks: Counter[str] = Counter()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in _samples(entry, dtype, backward):
            result["samples"] += 1
            torch.dipu.fallback.reset()
            for mode, fault in _faults(entry, sample, backward):
                result["checks"] += 1
                if fault is None:
                    continue
                result["failed"] += 1
                if len(result["failures"]) < _SHOWN:
                    result["failures"].append({"mode": mode, "sample": sample.summary()[:400], "fault": fault[:600]})
            for row in torch.dipu.fallback.report():
                fallbacks[f"{row.operator} ({row.cause})"] += row.count
    result["fallbacks"] = dict(sorted(fallbacks.items()))
    return result


def _samples(entry: Any, dtype: torch.dtype, backward: bool) -> Iterator[Any]:
    try:
        yield from entry.sample_inputs("cpu", dtype, requires_grad=backward)
    except (RuntimeError, NotImplementedError, TypeError):
        return  # the CPU cannot make the sample


def _faults(entry: Any, sample: Any, backward: bool) -> Iterator[tuple[str, str | None]]:
    """Each check of one sample with what it found; nothing where the CPU itself fails."""
    values = _is_repeatable(entry, sample)
    if values is None:
        return
    reference, ours = call_of(sample, "cpu"), call_of(sample, DEVICE, entry.name in HOST_ARGUMENTS)
    expected = reference.run(entry.op)
    actual, fault = _attempt(lambda: ours.run(entry.op))
    yield "forward", fault or _judged(entry, sample, actual, expected, values, lambda call: call.run(entry.op))
    ties = entry.name in (*POSITIONS, "msort") and sample.input.dtype in (torch.float16, torch.bfloat16)
    if fault is None and backward and values and not ties:
        yield from _backward(entry, sample, reference, ours, expected, actual)
    if fault is None and values:
        yield from _inplace(entry, sample)
        yield from _out(entry, sample, expected)


class Randomness(TorchDispatchMode):
    """Notices an operator that draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
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
    entry: Any, sample: Any, actual: Any, expected: Any, values: bool, run: Callable[[Call], Any]
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


def _rounded_run(sample: Any, run: Callable[[Call], Any]) -> Any:
    with Rounded():
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
    entry: Any, sample: Any, reference: Call, ours: Call, expected: Any, actual: Any
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

    def gradients_of(call: Call) -> list[Any]:
        return gradients(floating(process(call.run(entry.op))), call.leaves(), weights)

    yield "backward", fault or _judged(entry, sample, found, wanted, True, gradients_of)


def _inplace(entry: Any, sample: Any) -> Iterator[tuple[str, str | None]]:
    variant = entry.get_inplace()
    if variant is None or sample.broadcasts_input or not isinstance(sample.input, torch.Tensor):
        return

    def written(call: Call, device: str) -> tuple[torch.Tensor, str | None]:
        target = call.input.detach().clone()
        with torch.no_grad():
            result, fault = _attempt(lambda: with_input(call, target).run(variant))
        if fault is None and isinstance(result, torch.Tensor) and result.data_ptr() != target.data_ptr():
            fault = "the result is not the tensor itself"
        return target, fault

    yield from _written(entry, sample, written, "inplace")


def _out(entry: Any, sample: Any, expected: Any) -> Iterator[tuple[str, str | None]]:
    single = isinstance(expected, torch.Tensor)
    several = isinstance(expected, tuple) and all(isinstance(e, torch.Tensor) for e in expected)
    if not entry.supports_out or not (single or several):
        return
    exact = call_of(sample, "cpu")

    def written(call: Call, device: str) -> tuple[Any, str | None]:
        model = expected if _same_dtypes(call, exact) else wide(sample).run(entry.op)
        outs = tree_map(lambda e: torch.zeros_like(e, device=device), model)
        outs = outs if single else tuple(outs)
        with torch.no_grad():
            _, fault = _attempt(lambda: call.run(entry.op, out=outs))
        return outs, fault

    yield from _written(entry, sample, written, "out")


def _same_dtypes(first: Call, second: Call) -> bool:
    return [t.dtype for t in tensors_of(first)] == [t.dtype for t in tensors_of(second)]


def _written(
    entry: Any, sample: Any, written: Callable[[Call, str], tuple[Any, str | None]], mode: str
) -> Iterator[tuple[str, str | None]]:
    """What the operator wrote on the device against what it wrote on the CPU; nothing where the CPU refuses."""
    wanted, refused = written(call_of(sample, "cpu"), "cpu")
    if refused is not None:
        return
    found, fault = written(call_of(sample, DEVICE, entry.name in HOST_ARGUMENTS), DEVICE)
    yield mode, fault or _judged(entry, sample, found, wanted, True, lambda call: _unless(written(call, "cpu")))


def _unless(result: tuple[Any, str | None]) -> Any:
    value, fault = result
    if fault is not None:
        raise RuntimeError(fault)
    return value
