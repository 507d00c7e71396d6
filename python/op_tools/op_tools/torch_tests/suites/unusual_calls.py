"""Calls that few programs make, of every operator: two dtypes or devices, shared memory, numbers at a dtype's limits.

The CPU says what each gives or raises; of two devices, which it has not, torch's fake tensors say it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from op_tools.torch_tests.against_cpu import AgainstCpu, Raised, samples, seen
from op_tools.torch_tests.opinfo.entry import HOST_ARGUMENTS, UNINITIALIZED
from op_tools.torch_tests.opinfo.samples import SampleCall, call_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How many calls of each kind are made."""

    samples: int  # of each operator
    others: tuple[torch.dtype, ...]  # that a tensor, or an output, is given beside the operator's own
    written: tuple[torch.dtype, ...]  # of samples whose result goes into an output
    numbers: tuple[torch.dtype, ...]  # of samples whose numbers go to the limits


ALL = Extent(
    samples=3,
    others=(torch.float16, torch.float64, torch.int64, torch.complex64, torch.bool),
    written=(torch.float32, torch.uint8, torch.int64),
    numbers=(torch.uint8, torch.int16, torch.float16, torch.float32),
)

# What an operator draws differs from device to device.
_RANDOM = {op.name for op in op_db if "rand" in op.name or "dropout" in op.name} | {
    "bernoulli",
    "multinomial",
    "normal",
    "uniform",
    "exponential",
    "cauchy",
    "geometric",
    "log_normal",
    "nn.functional.rrelu",
    "nn.functional.multi_head_attention_forward",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "nn.functional.scaled_dot_product_attention",
}
# torch's own kernels on the CPU write beyond the memory of an output whose elements lie at one place.
_BEYOND_MEMORY = {"narrow_copy", "nn.functional.avg_pool3d", "torch._scaled_mm"}
_LEFT_OUT = UNINITIALIZED | HOST_ARGUMENTS | _RANDOM
DETERMINATE = [op for op in op_db if op.name not in _LEFT_OUT and "sparse" not in op.name]

Program = Callable[[str], Any]


def _of(op: Any, dtype: torch.dtype, extent: Extent) -> Iterator[Any]:
    return islice(samples(op, dtype), extent.samples)


def _changed(sample: Any, change: Callable[[Any], Any], place: int, device: str) -> SampleCall:
    """The sample on `device`, with the leaf at `place` changed."""
    call = call_of(sample, device)
    leaves, tree = tree_flatten((call.input, call.args, call.kwargs))
    leaves[place] = change(leaves[place])
    given, args, kwargs = tree_unflatten(leaves, tree)
    return replace(call, input=given, args=args, kwargs=kwargs)


def _places(sample: Any, kind: type | tuple[type, ...]) -> list[int]:
    leaves = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
    return [i for i, leaf in enumerate(leaves) if isinstance(leaf, kind) and not isinstance(leaf, bool)]


def _floating(sample: Any) -> list[int]:
    leaves = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
    return [i for i in _places(sample, torch.Tensor) if leaves[i].dtype == torch.float32]


def two_dtypes(op: Any, extent: Extent = ALL) -> Iterator[tuple[str, Program]]:
    for number, sample in enumerate(_of(op, torch.float32, extent)):
        places = _floating(sample)
        for place in places if len(places) > 1 else ():
            for dtype in extent.others:
                yield (
                    f"sample {number}, tensor {place} of {dtype}",
                    lambda d, s=sample, p=place, t=dtype: _as_floats(_changed(s, lambda x: x.to(t), p, d).run(op)),
                )


def _as_floats(result: Any) -> Any:
    """Doubles as floats, which one of the operands or the product was: with their dtype, and no more digits."""
    doubles = lambda x: isinstance(x, torch.Tensor) and x.dtype == torch.float64  # noqa: E731
    return tree_map(lambda x: (str(x.dtype), x.float()) if doubles(x) else x, result)


def shared_memory(op: Any, extent: Extent = ALL) -> Iterator[tuple[str, Program]]:
    """An output of one element in memory, one that lies beside an input by a single element, and an input itself."""
    if not op.supports_out or op.name in _BEYOND_MEMORY:
        return
    for number, sample in enumerate(_of(op, torch.float32, extent)):
        result = seen(lambda d, s=sample: call_of(s, d).run(op), "cpu")
        if not isinstance(result, torch.Tensor) or result.numel() < 2:
            continue
        expanded = lambda d, s=sample, r=result: call_of(s, d).run(op, out=_one_place(r, d))  # noqa: E731
        yield f"sample {number}, all elements at one place", expanded
        for place in _places(sample, torch.Tensor):
            for shift in (0, 1):
                yield (
                    f"sample {number}, over tensor {place}, shifted by {shift}",
                    lambda d, s=sample, r=result, p=place, n=shift: _written_over(op, s, r, p, n, d),
                )
    if op.inplace_variant is not None:
        for number, sample in enumerate(_of(op, torch.float32, extent)):
            if isinstance(sample.input, torch.Tensor) and sample.input.numel() > 1:
                yield (
                    f"sample {number}, in place at one place",
                    lambda d, s=sample: _in_place(op, s, d),
                )


def _one_place(like: torch.Tensor, device: str) -> torch.Tensor:
    return torch.zeros((1,) * like.dim(), dtype=like.dtype, device=device).expand(like.shape)


def _in_place(op: Any, sample: Any, device: str) -> Any:
    call = call_of(sample, device)
    call = replace(call, input=_one_place(call.input, device))
    return call.run(op.inplace_variant)


def _written_over(op: Any, sample: Any, result: torch.Tensor, place: int, shift: int, device: str) -> Any:
    """The operator with an output over the memory of an input."""
    held: list[torch.Tensor] = []

    def laid(tensor: torch.Tensor) -> torch.Tensor:
        size = max(tensor.numel(), result.numel()) + shift
        memory = torch.zeros(size, dtype=tensor.dtype, device=device)
        view = memory[: tensor.numel()].view(tensor.shape).copy_(tensor)
        held.append(memory[shift : shift + result.numel()].view(result.shape))
        return view

    call = _changed(sample, laid, place, device)
    return call.run(op, out=held[0])


def written_dtypes(op: Any, extent: Extent = ALL) -> Iterator[tuple[str, Program]]:
    if not op.supports_out:
        return
    for dtype in extent.written:
        for number, sample in enumerate(_of(op, dtype, extent)):
            result = seen(lambda d, s=sample: call_of(s, d).run(op), "cpu")
            if isinstance(result, torch.Tensor):
                for other in extent.others:
                    yield (
                        f"{dtype}, sample {number}, into {other}",
                        lambda d, s=sample, r=result, t=other: _as_floats(
                            call_of(s, d).run(op, out=torch.zeros(r.shape, dtype=t, device=d))
                        ),
                    )


def limits(op: Any, extent: Extent = ALL) -> Iterator[tuple[str, Program]]:
    """Each number of a sample at the limits of the dtype, and beyond them."""
    for dtype in extent.numbers:
        if dtype not in op.dtypes:
            continue
        info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
        beyond = 1e300 if dtype.is_floating_point else info.max + 1
        for number, sample in enumerate(_of(op, dtype, extent)):
            leaves = tree_flatten((sample.input, sample.args, sample.kwargs))[0]
            for place in _places(sample, (int, float)):
                if isinstance(leaves[place], int) and not _is_scalar(op, leaves[place]):
                    continue
                for value in (info.max, beyond, -beyond, 2.5):
                    yield (
                        f"{dtype}, sample {number}, {value} for argument {place}",
                        lambda d, s=sample, p=place, v=value: _changed(s, lambda _: v, p, d).run(op),
                    )


def _is_scalar(op: Any, value: int) -> bool:
    """An integer may be a dimension or a size; only of elementwise operators none is."""
    return isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo))


def elsewhere(
    op: Any, there: Callable[[torch.Tensor], torch.Tensor], extent: Extent = ALL
) -> Iterator[tuple[str, Program]]:
    """Each tensor of a sample in another place."""
    for number, sample in enumerate(_of(op, torch.float32, extent)):
        places = _places(sample, torch.Tensor)
        for place in places if len(places) > 1 else ():
            yield f"sample {number}, tensor {place}", lambda d, s=sample, p=place: _changed(s, there, p, d).run(op)


def _same(program: Program) -> Program:
    return program


class TestUnusualCalls(AgainstCpu):
    def check(self, device: str, programs: Iterator[tuple[str, Program]]) -> None:
        found = list(programs)
        if not found:
            self.skipTest("no such call")
        self.all_same(device, found)

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_two_dtypes(self, device: str, op: Any) -> None:
        self.check(device, two_dtypes(op))

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_shared_memory(self, device: str, op: Any) -> None:
        self.check(device, shared_memory(op))

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_written_dtypes(self, device: str, op: Any) -> None:
        self.check(device, written_dtypes(op))

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_limits(self, device: str, op: Any) -> None:
        self.check(device, limits(op))

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_host_tensors(self, device: str, op: Any) -> None:
        self.elsewhere(device, op, lambda x: x.cpu())

    @ops(DETERMINATE, dtypes=OpDTypes.none)
    def test_two_devices(self, device: str, op: Any) -> None:
        kind = torch.device(device).type
        if torch.get_device_module(kind).device_count() < 2:
            self.skipTest("one device")
        self.elsewhere(device, op, lambda x: x.to(f"{kind}:1"))

    def elsewhere(self, device: str, op: Any, there: Callable[[torch.Tensor], torch.Tensor]) -> None:
        none_taken(self, device, elsewhere(op, there))


def none_taken(
    test: AgainstCpu, device: str, programs: Iterator[tuple[str, Program]], how: Callable[[Program], Program] = _same
) -> None:
    """Fails if the device, to which the programs are given as `how` makes them, runs one that fake tensors refuse."""
    here = str(torch.device(torch.device(device).type, 0))
    taken, count = [], 0
    for name, program in programs:
        count += 1
        with FakeTensorMode(allow_non_fake_inputs=True):
            expected = seen(lambda _, p=program: p(here), here)
        refused = isinstance(expected, Raised) and "device" in expected.text
        if refused and not isinstance(seen(how(program), here), Raised):
            taken.append(name)
    if not count:
        test.skipTest("no such call")
    if taken:
        test.fail(f"{len(taken)} of {count} are taken: " + "; ".join(taken[:5]))


instantiate_device_type_tests(TestUnusualCalls, globals(), allow_mps=True, allow_xpu=True)
