"""Runs captured calls again, on any device, and says whether they give what they gave, or what the CPU gives."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from diopi_conformance.judgement.tolerance import Terms
from op_tools.calls import OperatorCall
from op_tools.clean_state import clean_state
from op_tools.devices import synchronize
from op_tools.judgement import DTYPES, Difference, difference, numbers, tolerance_for
from op_tools.overloads import Overload
from op_tools.reference import NoReference, Reference, outputs_of
from op_tools.store.reader import BadCapture, Capture
from op_tools.tools.compare import changed, differences
from op_tools.values import tensors_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One call that was run again."""

    capture: Capture
    differences: tuple[Difference, ...]  # from what was captured, or from the CPU
    milliseconds: tuple[float, ...]  # of each timed run, by the host's clock, the device waited for
    skipped: str  # why nothing was compared; empty where it was
    error: str  # what the call raised; empty where nothing
    harmed: tuple[str, ...] = ()  # arguments that were changed though they are only read

    @property
    def good(self) -> bool:
        return not self.error and not self.harmed and all(d.good for d in self.differences)

    @property
    def text(self) -> str:
        """e.g. "aten.addmm.default: result[0] is 3, expected 4"."""
        told = [d.message for d in self.differences if not d.good] + [changed(name) for name in self.harmed]
        wrong = self.error or "; ".join(told) or self.skipped or "equal"
        times = f", median {median(self.milliseconds):.4g} ms of {len(self.milliseconds)}" if self.milliseconds else ""
        return f"{self.capture.title}: {wrong}{times}"


def replay(capture: Capture, device: str, *, against_cpu: bool, times: int = 0) -> Replayed:
    """Runs one call, compares it with the CPU or with what was captured, and times it `times` times.

    Raises BadCapture for a file that is damaged.
    """
    call = capture.call(device)
    try:
        found, skipped, harmed = _against_cpu(call) if against_cpu else (*_against_capture(call, capture), ())
    except BadCapture:
        raise
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        return Replayed(
            capture=capture, differences=(), milliseconds=(), skipped="", error=str(error).partition("\n")[0]
        )
    spans = tuple(_timed(capture, device, times))
    return Replayed(
        capture=capture, differences=tuple(found), milliseconds=spans, skipped=skipped, error="", harmed=harmed
    )


def _against_cpu(call: OperatorCall) -> tuple[list[Difference], str, tuple[str, ...]]:
    if call.overload.random:
        call()
        return [], "random: another device has other numbers", ()
    try:
        reference = Reference(call)
        results = call()
        harmed = tuple(reference.harmed())
        reference.run()
    except NoReference as reason:
        return [], f"the CPU cannot say: {reason}", ()
    with clean_state():
        return differences(call, results, reference), "", harmed


def _against_capture(call: OperatorCall, capture: Capture) -> tuple[list[Difference], str]:
    """Elements that were computed twice the same way may differ by what two right results differ."""
    overload = call.overload
    results = call()
    if overload.random:
        return [], "random: another run has other numbers"
    actual, expected = outputs_of(call, results), capture.outputs()
    read = {tensor.dtype for _, tensor in tensors_in(call.given) if tensor.dtype in DTYPES}
    with clean_state():
        return [
            _like_captured(overload, capture, place, actual.get(place), tensor, read)
            for place, tensor in expected.items()
        ], ""


def _like_captured(
    overload: Overload,
    capture: Capture,
    place: str,
    actual: torch.Tensor | None,
    expected: torch.Tensor,
    read: set[torch.dtype],
) -> Difference:
    if actual is None:
        raise BadCapture(f"{capture.folder}: the operator gives no '{place}'")
    bound = tolerance_for(overload, capture.record["function"], expected.dtype, read)
    exact = numbers(expected)

    def measure() -> Terms:
        finite = np.abs(np.where(np.isfinite(exact), exact, 0))
        return Terms(
            magnitude=np.full(exact.shape, max(1.0, float(finite.max(initial=0.0)))), length=max(1, exact.size)
        )

    return difference(place, actual, expected, bound, measure, {})


def _timed(capture: Capture, device: str, times: int) -> Iterator[float]:
    """Milliseconds of each of `times` runs after two warm ones; what a run writes, the next one reads."""
    call = capture.call(device)
    for run in range(times + 2 if times else 0):
        synchronize(call.given)
        begun = time.perf_counter()
        results = call()
        synchronize((call.given, results))
        if run >= 2:
            yield 1e3 * (time.perf_counter() - begun)
