"""torch's entries of operators, and each at a dtype as a test."""

import time
from typing import Any

import torch

from op_tools.torch_tests.opinfo.entry import check_entry

NAME = "opinfo"  # of the suite


class Entries:
    """The tests of one device, e.g. "nn.functional.conv2d.float32"; at every dtype of the CPU, if `every`.

    With `coverage` the details of each have what became of every operator that it reaches.
    """

    def __init__(self, device: str, every: bool, coverage: bool) -> None:
        self._device = device
        self._coverage = coverage
        self._tests = {
            f"{name}.{str(dtype).removeprefix('torch.')}": (entry, dtype)
            for name, entry in entries().items()
            for dtype in dtypes_of(entry, every)
        }

    def names(self) -> list[str]:
        return list(self._tests)

    def run(self, name: str) -> dict[str, Any]:
        """{"outcome", "reason", "seconds", "details"}: see Checks.outcome."""
        entry, dtype = self._tests[name]
        begin = time.perf_counter()
        outcome = check_entry(entry, dtype, self._device, self._coverage).outcome()
        return {**outcome, "seconds": round(time.perf_counter() - begin, 3)}


def entries() -> dict[str, Any]:
    """By name, e.g. "add", "div.floor_rounding"; a second one of a name is "add#2"."""
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
