"""The unusual calls, each as a graph that torch.compile hands to the device's compiler.

A graph must give what the CPU gives, eager or by "aot_eager", or raise what one of them raises: torch checks some
arguments only in its kernels, which a graph of fake tensors never meets.
"""

import copy
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import torch
from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops
from torch.utils._pytree import tree_flatten

from op_tools.torch_tests.against_cpu import AgainstCpu, difference_of, seen
from op_tools.torch_tests.suites.unusual_calls import (
    DETERMINATE,
    Extent,
    Program,
    elsewhere,
    limits,
    none_taken,
    shared_memory,
    two_dtypes,
    written_dtypes,
)

# Each call is compiled twice: fewer than the eager ones, of every kind.
_EXTENT = Extent(
    samples=1,
    others=(torch.float16, torch.int64),
    written=(torch.float32,),
    numbers=(torch.uint8, torch.float16),
)
# (operator, extent) to named programs
Kind = Callable[[Any, Extent], Iterator[tuple[str, Program]]]
_graphs: ContextVar[bool] = ContextVar("_graphs", default=False)


def _as_graph(program: Program) -> Program:
    """The program, in which an entry of `_both` compiles its calls."""

    def run(device: str) -> Any:
        token = _graphs.set(True)
        try:
            return program(device)
        finally:
            _graphs.reset(token)

    return run


def _both(op: Any) -> Any:
    """The operator's entry, whose calls are compiled within `_as_graph`."""
    entry = copy.copy(op)
    entry.op = _switched(op.op)
    if op.inplace_variant is not None:
        entry.inplace_variant = _switched(op.inplace_variant)
    return entry


def _switched(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        if not _graphs.get():
            return function(*args, **kwargs)
        torch.compiler.reset()
        return torch.compile(function, backend=_backend(args, kwargs), dynamic=False)(*args, **kwargs)

    return run


def _backend(args: Any, kwargs: Any) -> str:
    """The device's compiler, if a tensor lies there or one is made there."""
    leaves = tree_flatten((args, kwargs))[0]
    devices = {leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor)}
    if kwargs.get("device") is not None:
        devices.add(torch.device(kwargs["device"]).type)
    return "diopi" if devices - {"cpu"} else "aot_eager"


class TestCompiledCalls(AgainstCpu):
    def check(self, device: str, op: Any, kind: Kind) -> None:
        found: list[str] = []
        count = 0
        for name, program in kind(_both(op), _EXTENT):
            count += 1
            graph = _as_graph(program)
            actual = seen(graph, device)
            fault = difference_of(actual, seen(program, "cpu"))
            if fault is not None and difference_of(actual, seen(graph, "cpu")) is not None:
                found.append(f"{name}: {fault}")
        if not count:
            self.skipTest("no such call")
        self.none_differ(found, count)

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_two_dtypes(self, device: str, op: Any) -> None:
        self.check(device, op, two_dtypes)

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_shared_memory(self, device: str, op: Any) -> None:
        self.check(device, op, shared_memory)

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_written_dtypes(self, device: str, op: Any) -> None:
        self.check(device, op, written_dtypes)

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_limits(self, device: str, op: Any) -> None:
        self.check(device, op, limits)

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_host_tensors(self, device: str, op: Any) -> None:
        none_taken(self, device, elsewhere(_both(op), lambda x: x.cpu(), _EXTENT), _as_graph)


instantiate_device_type_tests(TestCompiledCalls, globals(), allow_mps=True, allow_xpu=True)
