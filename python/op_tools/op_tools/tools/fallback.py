"""Runs operators on the CPU: their tensors are copied there, and what they give and write comes back."""

import time
from collections import Counter
from typing import Any, ClassVar

import torch

from diopigen.vocabulary.torch_dtypes import HALVES
from op_tools.calls import OperatorCall
from op_tools.clean_state import clean_state
from op_tools.copies import CannotCopy, Copies
from op_tools.devices import CPU, device_of, fallback_counter
from op_tools.host_forms import on_host
from op_tools.interception import Proceed
from op_tools.overloads import Overload
from op_tools.result_dtypes import result_dtypes
from op_tools.tool import OpTool
from op_tools.values import mapped, results_of, tensors_in


class OpFallback(OpTool):
    """Runs on the CPU what runs on another device, forward, backward and optimizer alike.

    What the CPU has no kernel for in half precision it computes in float32. Views stay where they are, and so do random
    operators: another device has other numbers. `calls` counts, by overload, what ran on the CPU, and `left` what could
    not, with the reason. Calls of dipu stand in torch.dipu.fallback.report(), too, with the cause "forced". See OpTool
    for the rest.
    """

    variable: ClassVar[str] = "FALLBACK"
    layer: ClassVar[int] = 6

    def __init__(self, ops: Any = None, **options: Any) -> None:
        super().__init__(ops, **options)
        self.calls: Counter[str] = Counter()
        self.left: Counter[tuple[str, str]] = Counter()

    def serves(self, overload: Overload) -> bool:
        return overload.repeatable

    def apply(self, call: OperatorCall, proceed: Proceed) -> Any:
        home = device_of(call)
        if home is None or home.type in ("cpu", "meta"):
            return proceed(call)
        if call.overload.random:
            self.left[call.overload.name, "random"] += 1
            return proceed(call)
        begin = time.perf_counter()
        try:
            results = on_cpu(call, home)
        except (CannotCopy, NotImplementedError) as reason:
            self.left[call.overload.name, str(reason).partition("\n")[0]] += 1
            return proceed(call)
        self.calls[call.overload.name] += 1
        if (count := fallback_counter(home)) is not None:
            name: str = call.overload.function.name()  # type: ignore[no-untyped-call] # e.g. "aten::add.Tensor"
            seconds = time.perf_counter() - begin
            count(name, "forced", bytes=_bytes_on(home, (call.given, results)), seconds=seconds)
        return results


def on_cpu(call: OperatorCall, home: torch.device) -> Any:
    """What `call` gives, computed on the CPU; results on `home`, and what is written written.

    Raises CannotCopy for arguments without plain memory, and what torch raises where the call itself is wrong.
    """
    with clean_state():
        return _on_cpu(call, home)


def _bytes_on(device: torch.device, values: Any) -> int:
    """Of the tensors in `values` that lie on `device`."""
    return sum(t.numel() * t.element_size() for _, t in tensors_in(values) if t.device == device)


def _on_cpu(call: OperatorCall, home: torch.device) -> Any:
    copies = Copies(call, CPU)
    try:
        results = on_host(copies.call)
    except (RuntimeError, NotImplementedError):
        if not any(tensor.dtype in HALVES for _, tensor in tensors_in(call.given)):
            raise
        return _in_float32(call, home)
    return copies.given_back(call, results, home)


def _in_float32(call: OperatorCall, home: torch.device) -> Any:
    copies = Copies(call, CPU, lambda dtype: torch.float32 if dtype in HALVES else dtype)
    found = on_host(copies.call)
    dtypes = result_dtypes(call)
    if dtypes is not None:
        exact = results_of(found)
        narrow = {
            id(r): d for r, d in zip(exact, dtypes, strict=False) if isinstance(r, torch.Tensor) and d is not None
        }
        written = {id(copies.copy_of(t)) for name in call.overload.written for _, t in tensors_in(call.given.get(name))}
        found = mapped(found, lambda r: r.to(narrow[id(r)]) if id(r) in narrow and id(r) not in written else r)
    return copies.given_back(call, found, home)
