"""Depthwise convolutions and their gradients, in runs of a host and in elements of a GPU; against torch in float64."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from portable import FLAGS, TEAMS, Portable, build


@pytest.fixture(scope="module", params=[FLAGS, TEAMS], ids=["alone", "teams"])
def kernels(request: pytest.FixtureRequest) -> Portable:
    return Portable(build(("convolution",), request.param))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("channels", "filters"), [(12, 12), (4, 8)])
@pytest.mark.parametrize("tail", [(1, 3, 1), (2, 1, 2)], ids=str)
def test_planes(kernels: Portable, dtype: Any, channels: int, filters: int, tail: tuple[int, int, int]) -> None:
    generator = torch.Generator().manual_seed(channels)
    x, w = (torch.randn(sizes, generator=generator).to(dtype) for sizes in ((3, channels, 15, 14), (filters, 1, 7, 5)))
    leaves = [t.double().requires_grad_() for t in (x, w)]
    expected = F.conv2d(*leaves, None, *tail, groups=channels)
    grad = torch.randn(expected.shape, generator=generator).to(dtype)
    expected.backward(grad.double())
    given = (*((each, each) for each in tail), channels)
    out, grad_x, grad_w = (torch.full_like(t, torch.nan, memory_format=torch.contiguous_format) for t in (grad, x, w))
    kernels("diopiConvolution2d", out, x, w, None, *given)
    kernels("diopiConvolution2dBackward", grad_x, grad_w, None, grad, x, w, None, *given)
    digits = 4 * torch.finfo(dtype).eps
    for found, wanted in ((out, expected.detach()), *zip((grad_x, grad_w), (t.grad for t in leaves), strict=True)):
        torch.testing.assert_close(found.double(), wanted, rtol=digits, atol=digits * wanted.abs().max().item())
