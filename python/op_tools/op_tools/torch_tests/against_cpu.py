"""The form of the suites' tests: one program is run on the CPU and on the device, and must behave the same."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal.common_utils import TestCase

from op_tools.torch_tests.opinfo.samples import difference

_SHOWN = 5  # differences of one test that are told


class Raised(NamedTuple):
    """The program raised this. Texts may differ, since some name the device."""

    kind: type[Exception]  # e.g. IndexError
    text: str


def seen(program: Callable[[str], Any], device: str) -> Any:
    """What the program gives on the device, or that it raised."""
    torch.manual_seed(0)
    try:
        return program(device)
    except Exception as error:
        return Raised(type(error), str(error))


def facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    """The tensor with what `==` does not see."""
    bits = (tensor.is_conj(), tensor.is_neg(), tensor.requires_grad, tensor.is_leaf)
    return (tensor, tuple(tensor.stride()), tensor.storage_offset(), *bits)


def moved(module: torch.nn.Module, device: str) -> torch.nn.Module:
    """A copy of the module on the device."""
    return copy.deepcopy(module).to(device)


class AgainstCpu(TestCase):  # type: ignore[no-untyped-call, unused-ignore]
    """A test case that compares programs. A program takes the device and returns tensors, plain values, or trees."""

    def same(self, device: str, program: Callable[[str], Any]) -> Any:
        """Fails where the program does not do on the device what it does on the CPU; returns what the CPU did."""
        return self.all_same(device, [("", program)])

    def all_same(self, device: str, programs: Iterable[tuple[str, Callable[[str], Any]]]) -> Any:
        """The same for each (name, program); a failure names the first few that differ. There must be one at least."""
        found: list[str] = []
        count, expected = 0, None
        for name, program in programs:
            count += 1
            expected = seen(program, "cpu")
            fault = difference_of(seen(program, device), expected)
            if fault is not None:
                found.append(f"{name}: {fault}" if name else fault)
        self.assertGreater(count, 0, "there is nothing to compare")
        self.none_differ(found, count)
        return expected

    def none_differ(self, found: list[str], count: int) -> None:
        """Fails if any of `count` comparisons differed."""
        if found:
            self.fail(f"{len(found)} of {count} differ from the CPU: " + "; ".join(found[:_SHOWN]))


def difference_of(actual: Any, expected: Any) -> str | None:
    """What differs. What the CPU has no kernel for, or trips over itself, may be refused in any way, or done."""
    if isinstance(expected, Raised) and (
        expected.kind is NotImplementedError or "INTERNAL ASSERT FAILED" in expected.text
    ):
        return None
    if isinstance(actual, Raised) and isinstance(expected, Raised):
        # NotImplementedError is a RuntimeError.
        same = issubclass(actual.kind, expected.kind)
        return None if same else f"raises {actual.kind.__name__} where the CPU raises {expected.kind.__name__}"
    if isinstance(actual, Raised):
        return f"raises {actual.kind.__name__}: {' '.join(actual.text.split())[:300]}"
    if isinstance(expected, Raised):
        return f"gives a result where the CPU raises {expected.kind.__name__}: {' '.join(expected.text.split())[:200]}"
    return difference(actual, expected)


def samples(op: Any, dtype: torch.dtype, requires_grad: bool = False) -> Iterator[Any]:
    """The operator's samples, made on the CPU; none where the CPU cannot make them."""
    try:
        yield from op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    except (RuntimeError, NotImplementedError, TypeError):
        return
