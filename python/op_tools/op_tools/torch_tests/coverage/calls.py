"""What the calls of each operator that a sample reaches came to: on the device, on the CPU, wrong."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch

from op_tools.calls import OperatorCall
from op_tools.devices import device_of
from op_tools.interception import Proceed
from op_tools.overloads import Overload
from op_tools.tools.compare import OpAutoCompare
from op_tools.values import tensors_in


@dataclass(slots=True)
class CallCounts:
    """Of one overload in one dtype."""

    calls: int = 0
    compared: int = 0  # with the CPU
    fallen: int = 0  # calls in which something ran on the CPU
    causes: Counter[str] = field(default_factory=Counter)  # e.g. "aten::special_i1.out (no kernel)"
    apart: int = 0  # calls with a result that differs from the CPU's, which no result of a sample shows
    wrong: int = 0  # others that differ
    example: str = ""  # the first that was wrong

    def as_data(self) -> dict[str, Any]:
        """Without what is zero."""
        found = {"calls": self.calls, "compared": self.compared, "fallen": self.fallen}
        found |= {"apart": self.apart, "wrong": self.wrong}
        texts = {"causes": dict(sorted(self.causes.items())), "example": self.example}
        return {key: value for key, value in {**found, **texts}.items() if value}


class CallCoverage(OpAutoCompare):
    """Counts the calls of torch's operators on `device`, each compared with the CPU where it can be.

    Views and random operators have nothing to compare; what they fall back for is counted all the same. A result that
    differs is wrong if the results of the sample do, too: what an operator only keeps for its gradient, or what nobody
    asked for, each device has in its own way.
    """

    def __init__(self, device: str) -> None:
        super().__init__(".*", disable=(), table=False, write=lambda text: None)
        self._device = device
        self._ledger = torch.get_device_module(device).fallback
        self._counts: dict[tuple[str, str], CallCounts] = {}
        self._causes: Counter[str] = Counter()  # of this sample
        self._differing: list[tuple[CallCounts, str]] = []  # calls of this sample, and what differs

    def serves(self, overload: Overload) -> bool:
        return overload.name.startswith("aten.")

    def apply(self, call: OperatorCall, proceed: Proceed) -> Any:
        place = device_of(call)
        if place is None or place.type != self._device:
            return proceed(call)
        causes: Counter[str] = Counter()

        def counted(given: OperatorCall) -> Any:
            before = self._fallbacks()
            results = proceed(given)
            causes.update(self._fallbacks() - before)
            return results

        wrong, compared = len(self.mismatches), self.compared.total()
        results = super().apply(call, counted) if call.overload.repeatable else counted(call)
        counts = self._counts.setdefault((call.overload.name, _dtype(call, results)), CallCounts())
        self._causes += causes
        counts.calls += 1
        counts.compared += self.compared.total() - compared
        counts.fallen += bool(causes)
        counts.causes += causes
        counts.compared += len(self.mismatches) - wrong
        self._differing += [(counts, mismatch.text[:300]) for mismatch in self.mismatches[wrong:]]
        return results

    def end_sample(self, failed: bool) -> Counter[str]:
        """What fell back in the sample that ran, by cause; `failed`: its results differ from the CPU's."""
        for counts, text in self._differing:
            if failed:
                counts.wrong += 1
                counts.example = counts.example or text
            else:
                counts.apart += 1
        causes, self._causes, self._differing = self._causes, Counter(), []
        return causes

    def as_data(self) -> list[dict[str, Any]]:
        """A row for each overload and dtype, in order."""
        return [
            {"overload": overload, "dtype": dtype, **counts.as_data()}
            for (overload, dtype), counts in sorted(self._counts.items())
        ]

    def _fallbacks(self) -> Counter[str]:
        return Counter({f"{row.operator} ({row.cause})": row.count for row in self._ledger.report()})


def _dtype(call: OperatorCall, results: Any) -> str:
    """That of the first tensor of numbers with fractions, or else of the first one, given before results: "float32"."""
    dtypes = [tensor.dtype for _, tensor in (*tensors_in(call.given), *tensors_in(results))]
    chosen = next((dtype for dtype in dtypes if dtype.is_floating_point or dtype.is_complex), *dtypes[:1] or (None,))
    return str(chosen).removeprefix("torch.")
