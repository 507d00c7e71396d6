"""Calls of the operators that torch decomposes and that no wrapper stands for, one for each overload."""

from collections.abc import Callable
from typing import Any

Call = Callable[[Any, Callable[..., Any]], Any]


def _pair(t: Callable[..., Any]) -> tuple[list[Any], list[Any]]:
    return [t(2, 3), t(5)], [t(2, 3), t(5)]


def _foreach(name: str, overload: str, *others: Callable[[Callable[..., Any]], Any]) -> Call:
    """A call of a foreach operator on two tensors; gives what it returns, or what it wrote in place."""

    def call(torch: Any, t: Callable[..., Any]) -> Any:
        tensors = _pair(t)[0]
        found = getattr(getattr(torch.ops.aten, name), overload)(tensors, *(other(t) for other in others))
        return tensors if found is None else found

    return call


def _tensors(t: Callable[..., Any]) -> list[Any]:
    return _pair(t)[1]


def _numbers(t: Callable[..., Any]) -> list[float]:
    return [2.0, 0.5]


def _number(t: Callable[..., Any]) -> float:
    return 1.5


def _tensor_of_numbers(t: Callable[..., Any]) -> Any:
    return t(2).cpu()


# The shapes of a product's gradient and of its factors.
_PRODUCTS = (
    ((3, 5), (3, 4), (4, 5)),
    ((2, 3, 5), (2, 3, 4), (4, 5)),
    ((2, 3), (2, 3, 4), (4,)),
    ((5,), (4,), (4, 5)),
    ((), (4,), (4,)),
)


def _matmul_backward(torch: Any, t: Callable[..., Any], *shapes: tuple[int, ...]) -> Any:
    """The gradients of a product; on the CPU, which has no such operator, by autograd."""
    grad, *factors = (t(*shape) for shape in shapes)
    if grad.device.type != "cpu":
        return torch.ops.aten.matmul_backward(grad, *factors, [True, True])
    leaves = [factor.requires_grad_() for factor in factors]
    return torch.autograd.grad(torch.matmul(*leaves), leaves, grad)


_SPECIFIED: dict[str, Call] = {
    "conv_transpose2d.input": lambda torch, t: torch.ops.aten.conv_transpose2d.input(
        t(2, 3, 5, 6), t(3, 4, 3, 2), t(4)
    ),
    "max_pool2d": lambda torch, t: torch.ops.aten.max_pool2d(t(2, 3, 6, 6), [2, 2]),
    "normal.float_float_out": lambda torch, t: torch.normal(0.0, 1.0, (3,), out=t(3)) * 0,
    "ctc_loss.IntList": lambda torch, t: torch.ops.aten.ctc_loss.IntList(
        t(6, 2, 5).log_softmax(-1), torch.tensor([[1, 2], [3, 3]], device=t(1).device), [6, 6], [2, 2]
    ),
    "ctc_loss.Tensor": lambda torch, t: torch.ops.aten.ctc_loss.Tensor(
        t(6, 2, 5).log_softmax(-1),
        torch.tensor([[1, 2], [3, 3]], device=t(1).device),
        torch.tensor([6, 6]),
        torch.tensor([2, 2]),
    ),
    "ones": lambda torch, t: torch.ops.aten.ones([2, 3], device=t(1).device),
    "zeros": lambda torch, t: torch.ops.aten.zeros([2, 3], device=t(1).device),
    "embedding_backward": lambda torch, t: torch.ops.aten.embedding_backward(
        t(4, 3), torch.tensor([0, 2, 2, 1], device=t(1).device), 5, -1, False, False
    ),
    "matmul": lambda torch, t: torch.ops.aten.matmul(t(2, 1, 3, 4), t(5, 4, 2)),
    "matmul.out": lambda torch, t: torch.ops.aten.matmul.out(t(2, 3, 4), t(4), out=t(0)),
    "matmul_backward": lambda torch, t: [_matmul_backward(torch, t, *shapes) for shapes in _PRODUCTS],
    "prod": lambda torch, t: torch.ops.aten.prod(t(3, 4)),
    "stack": lambda torch, t: torch.ops.aten.stack([t(2, 3), t(2, 3).double()], 1),
    "stack.out": lambda torch, t: torch.ops.aten.stack.out([t(2, 3), t(2, 3)], -1, out=t(0)),
    "copy_": lambda torch, t: torch.ops.aten.copy_(t(3, 2), t(2)),
}

_FOREACH: dict[str, Call] = {
    f"_foreach_{name}{tail}": _foreach(f"_foreach_{name}".rstrip("."), tail.strip(".") or "default", *others)
    for name, tail, others in (
        *((n, ".List", (_tensors,)) for n in ("add", "add_", "mul", "mul_", "div", "div_")),
        *((n, ".ScalarList", (_numbers,)) for n in ("mul", "mul_", "div", "div_")),
        *((n, ".Scalar", (_number,)) for n in ("div", "div_")),
        *((n, ".Scalar", (_tensors, _tensors, _number)) for n in ("addcmul_", "addcdiv_")),
        *((n, ".ScalarList", (_tensors, _tensors, _numbers)) for n in ("addcmul_", "addcdiv_")),
        *((n, ".Tensor", (_tensors, _tensors, _tensor_of_numbers)) for n in ("addcmul_", "addcdiv_")),
        *((n, "", ()) for n in ("sqrt", "sqrt_", "neg")),
        ("lerp_", ".Scalar", (_tensors, _number)),
    )
}

DECOMPOSITIONS: dict[str, Call] = {**_SPECIFIED, **_FOREACH}
