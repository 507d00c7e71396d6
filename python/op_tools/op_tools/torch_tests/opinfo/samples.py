"""Copies of a sample for the device, and the results of an operator on both sides held against each other."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from diopigen.vocabulary.torch_dtypes import wide_dtype
from op_tools.clean_state import clean_state

# Relative and absolute: a few units in the last place of sums over some hundred elements.
TOLERANCES = {
    torch.float64: (1e-7, 1e-8),
    torch.complex128: (1e-7, 1e-8),
    torch.float32: (1e-4, 1e-4),
    torch.complex64: (1e-4, 1e-4),
    torch.bfloat16: (3e-2, 4e-2),
    torch.float16: (1e-2, 5e-3),
    torch.complex32: (1e-2, 5e-3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCall:
    """One call of an operator: what a sample holds, on one device."""

    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self, function: Callable[..., Any], **further: Any) -> Any:
        return function(self.input, *self.args, **{**self.kwargs, **further})

    def leaves(self) -> list[torch.Tensor]:
        """The tensors that want a gradient, in order, each once."""
        found: dict[int, torch.Tensor] = {}
        for value in tree_flatten((self.input, self.args, self.kwargs))[0]:
            if isinstance(value, torch.Tensor) and value.requires_grad:
                found[id(value)] = value
        return list(found.values())


def call_of(sample: Any, device: str, host_arguments: bool = False) -> SampleCall:
    """A fresh copy on `device`; a tensor that stands twice in the sample stands twice in the copy.

    With `host_arguments` only the first argument moves: some operators want the others on the CPU.
    """
    copies: dict[int, torch.Tensor] = {}

    def copied(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if id(value) not in copies:
                fresh = value.detach().to(device, copy=True)
                copies[id(value)] = fresh.requires_grad_(value.requires_grad)
            return copies[id(value)]
        return type(value)(device) if _is_device(value) else value

    kwargs = {k: device if k == "device" and v is not None else tree_map(copied, v) for k, v in sample.kwargs.items()}
    return SampleCall(
        input=tree_map(copied, sample.input),
        args=tuple(sample.args) if host_arguments else tuple(tree_map(copied, a) for a in sample.args),
        kwargs=kwargs,
    )


def _is_device(value: Any) -> bool:
    """Whether it names a device that samples may name: their own, or CUDA where there is one."""
    return isinstance(value, (torch.device, str)) and str(value).partition(":")[0] in ("cpu", "cuda")


def wide(sample: Any) -> SampleCall:
    """A copy on the CPU in float64."""

    def widened(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and wide_dtype(value.dtype) is not value.dtype:
            return value.detach().to(wide_dtype(value.dtype)).requires_grad_(value.requires_grad)
        return value

    call = call_of(sample, "cpu")
    return SampleCall(
        input=tree_map(widened, call.input), args=tree_map(widened, call.args), kwargs=tree_map(widened, call.kwargs)
    )


def like(values: Any, model: Any) -> Any:
    """`values` in the dtypes of `model`."""
    leaves, tree = tree_flatten(values)
    models = tree_flatten(model)[0]
    if len(leaves) != len(models):
        return values
    cast = [
        a.to(b.dtype) if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) else a
        for a, b in zip(leaves, models, strict=True)
    ]
    return tree_unflatten(cast, tree)


def with_input(call: SampleCall, value: Any) -> SampleCall:
    return replace(call, input=value)


@clean_state()  # no tool looks on
def difference(actual: Any, expected: Any, values: bool = True) -> str | None:
    """The first difference in structure, dtype, shape or (if `values`) value; None where there is none."""
    mine, my_tree = tree_flatten(actual)
    other, other_tree = tree_flatten(expected)
    if len(mine) != len(other):
        return f"{my_tree} where the CPU gives {other_tree}"
    for index, (a, b) in enumerate(zip(mine, other, strict=True)):
        fault = _difference(a, b, values)
        if fault is not None:
            return fault if len(mine) == 1 else f"output {index}: {fault}"
    return None


def _difference(a: Any, b: Any, values: bool) -> str | None:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        same = type(a) is type(b) and (a == b or a != a or isinstance(a, torch.device) or not values)
        return None if same else f"{a!r} where the CPU gives {b!r}"
    if a.dtype != b.dtype or a.shape != b.shape or a.layout != b.layout:
        return f"{_kind(a)} where the CPU gives {_kind(b)}"
    if not values or b.numel() == 0:
        return None
    relative, absolute = TOLERANCES.get(b.dtype, (0, 0))
    try:
        host = a.detach().cpu() if b.layout == torch.strided else a.detach().cpu().to_dense()
        wanted = b.detach() if b.layout == torch.strided else b.detach().to_dense()
        torch.testing.assert_close(host, wanted, rtol=relative, atol=absolute, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return " ".join(str(error).split())
    return None


def _kind(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def tensors_of(call: SampleCall) -> list[torch.Tensor]:
    leaves = tree_flatten((call.input, call.args, call.kwargs))[0]
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def floating(values: Any) -> list[torch.Tensor]:
    """The outputs that a gradient can start from."""
    return [v for v in tree_flatten(values)[0] if isinstance(v, torch.Tensor) and v.requires_grad]


def cotangents(outputs: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Fixed weights for each output, on the CPU."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for output in outputs:
        dtype = output.dtype if output.dtype.is_complex else torch.float32
        found.append(torch.randn(output.shape, generator=generator, dtype=dtype).to(output.dtype))
    return found


def gradients(outputs: list[torch.Tensor], leaves: list[torch.Tensor], weights: list[torch.Tensor]) -> list[Any]:
    moved = [w.to(o.device) for w, o in zip(weights, outputs, strict=True)]
    return list(torch.autograd.grad(outputs, leaves, moved, allow_unused=True))
