"""What the device does at once, under vmap, functionalization and forward-mode and second derivatives."""

from collections.abc import Callable
from typing import Any

import pytest

Shapes = tuple[tuple[int, ...], ...]

# Each is called with `t` as torch, `f` as torch.nn.functional, and tensors of these shapes.
CALLS: dict[str, tuple[str, Shapes]] = {
    "linear": ("f.linear(x, y, z)", ((3, 4), (2, 4), (2,))),
    "linear of several dimensions": ("f.linear(x, y)", ((2, 3, 4), (2, 4))),
    "linear with one row": ("f.linear(x, y)", ((3, 4), (4,))),
    "linear of complex numbers": ("f.linear(t.complex(x, -x), t.complex(y, y)).abs()", ((3, 4), (2, 4))),
    "bilinear": ("f.bilinear(x, y, z)", ((3, 4), (3, 5), (2, 4, 5))),
    "convolution of lines": ("f.conv1d(x, y)", ((1, 2, 6), (3, 2, 3))),
    "convolution": ("f.conv2d(x, y, z, padding=1)", ((1, 2, 6, 5), (3, 2, 3, 3), (3,))),
    "convolution of volumes": ("f.conv3d(x, y)", ((1, 2, 4, 4, 4), (3, 2, 2, 2, 2))),
    "transposed convolution": ("f.conv_transpose2d(x, y, stride=2)", ((1, 2, 4, 5), (2, 3, 3, 3))),
    "attention": ("f.scaled_dot_product_attention(x, y, z)", ((2, 2, 5, 4),) * 3),
    "causal attention": ("f.scaled_dot_product_attention(x, y, z, is_causal=True, scale=0.3)", ((2, 2, 5, 4),) * 3),
    "attention of shared heads": (
        "f.scaled_dot_product_attention(x, y, z, enable_gqa=True)",
        ((1, 4, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)),
    ),
    "layer norm": ("f.layer_norm(x, (4,), y, z)", ((3, 4), (4,), (4,))),
    "group norm": ("f.group_norm(x, 2, y, z)", ((3, 4, 2), (4,), (4,))),
    "batch norm": ("f.batch_norm(x, None, None, y, z, True)", ((5, 4), (4,), (4,))),
    "instance norm": ("f.instance_norm(x)", ((2, 3, 5),)),
    "rms norm": ("f.rms_norm(x, (4,), y)", ((3, 4), (4,))),
    "softmax": ("f.softmax(x, 1)", ((3, 4),)),
    "logarithms of a softmax": ("f.log_softmax(x, 1)", ((3, 4),)),
    "gelu": ("f.gelu(x)", ((3, 4),)),
    "silu": ("f.silu(x)", ((3, 4),)),
    "glu": ("f.glu(x)", ((3, 4),)),
    "prelu": ("f.prelu(x, y)", ((2, 3), (3,))),
    "mean square": ("f.mse_loss(x, y)", ((3, 4), (3, 4))),
    "smooth distance": ("f.smooth_l1_loss(x, y)", ((3, 4), (3, 4))),
    "huber": ("f.huber_loss(x, y)", ((3, 4), (3, 4))),
    "binary entropy": ("f.binary_cross_entropy_with_logits(x, y.sigmoid())", ((3, 4), (3, 4))),
    "cosine": ("f.cosine_similarity(x, y)", ((3, 4), (3, 4))),
    "sum of exponentials": ("x.logsumexp(1)", ((3, 4),)),
    "product": ("x @ y", ((2, 3, 4), (4, 5))),
    "batched product": ("t.bmm(x, y)", ((2, 3, 4), (2, 4, 5))),
    "product and sum": ("t.addmm(x, y, z, beta=0.5)", ((3, 5), (3, 4), (4, 5))),
    "norm": ("t.linalg.vector_norm(x, 3, 1)", ((4, 3),)),
    "average pooling": ("f.avg_pool2d(x, 2)", ((1, 2, 4, 4),)),
    "greatest of windows": ("f.max_pool2d(x, 2)", ((1, 2, 4, 4),)),
    "running products": ("x.cumprod(1)", ((3, 4),)),
    "lower triangle": ("x.tril()", ((3, 4),)),
}
_CELLS = {
    "lstm cell": ("t.lstm_cell(x, (y, y), z, w)[0]", ((2, 3), (2, 4), (16, 3), (16, 4))),
    "gru cell": ("t.gru_cell(x, y, z, w)", ((2, 3), (2, 4), (12, 3), (12, 4))),
}


def function(torch: Any, name: str) -> Callable[..., Any]:
    program = (CALLS | _CELLS)[name][0]
    names = {"t": torch, "f": torch.nn.functional}
    return lambda *tensors: eval(program, names, dict(zip("xyzw", tensors, strict=False)))


def drawn(torch: Any, name: str, device: str, more: int = 0) -> tuple[Any, ...]:
    generator = torch.Generator().manual_seed(5 + more)
    shapes = (CALLS | _CELLS)[name][1]
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64).to(device) for shape in shapes)


def vmapped(torch: Any, name: str, device: str) -> Any:
    stacks = [torch.stack([x, 2 * x, x - 1]) for x in drawn(torch, name, device)]
    return torch.func.vmap(function(torch, name))(*stacks)


def tangents(torch: Any, name: str, device: str) -> Any:
    return torch.func.jvp(function(torch, name), drawn(torch, name, device), drawn(torch, name, device, 1))


def dual(torch: Any, name: str, device: str) -> Any:
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        pairs = zip(drawn(torch, name, device), drawn(torch, name, device, 1), strict=True)
        return tuple(forward.unpack_dual(function(torch, name)(*(forward.make_dual(*pair) for pair in pairs))))


def twice(torch: Any, name: str, device: str) -> Any:
    leaves = [x.requires_grad_() for x in drawn(torch, name, device)]
    loss = function(torch, name)(*leaves).pow(2).sum()
    first = torch.autograd.grad(loss, leaves, create_graph=True)
    return first, torch.autograd.grad(sum(g.pow(2).sum() for g in first), leaves)


def functional(torch: Any, name: str, device: str) -> Any:
    return torch.func.functionalize(function(torch, name))(*drawn(torch, name, device))


# What torch has no rule for, and its words.
LACKING = {("lstm cell", "vmapped"): "Batching rule not implemented for aten::lstm_cell"}
WAYS = {way.__name__: way for way in (vmapped, tangents, dual, twice, functional)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*CALLS, *_CELLS])
def test_as_on_the_cpu(torch: Any, name: str, way: str) -> None:
    if (name, way) in LACKING:
        with pytest.raises(RuntimeError, match=LACKING[name, way]):
            WAYS[way](torch, name, "dipu")
        return
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.MATH):  # the CPU's own attention has the first derivative only
        wanted = WAYS[way](torch, name, "cpu")
    found = torch.utils._pytree.tree_map(lambda x: x.detach().cpu(), WAYS[way](torch, name, "dipu"))
    torch.testing.assert_close(found, torch.utils._pytree.tree_map(lambda x: x.detach(), wanted), rtol=1e-6, atol=1e-9)
