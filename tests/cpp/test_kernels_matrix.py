"""Matrix products, convolution and pooling against torch, over dtypes, layouts and degenerate shapes."""

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parent / "kernels"))
from families import HALVES, Families, blank, close, layouts, numbers

from portable import DTYPE_NOT_SUPPORTED, ERROR, FLAGS, TEAMS, build

FLOATS = (torch.float32, torch.float64, *HALVES)


@pytest.fixture(scope="module")
def kernels() -> Families:
    names = ("matmul", "convolution", "max_pooling", "average_pooling", "adaptive_pooling", "cdist")
    return Families(build(names))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 1), (5, 1, 4), (1, 1, 1), (0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_mm_takes_any_layout(kernels: Families, dtype: torch.dtype, shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    a, b = numbers((m, k), dtype), numbers((k, n), dtype, 1)
    expected = a.double() @ b.double()
    if not dtype.is_floating_point:
        expected = (a.long() @ b.long()).to(dtype)
    for x, y, layout in itertools.product(layouts(a), layouts(b), range(3)):
        out = blank(expected.to(dtype), layout)
        kernels("diopiMm", out, x, y)
        close(out, expected, 3)


def test_mm_reads_expanded_operands(kernels: Families) -> None:
    a, b = numbers((1, 4)).expand(3, 4), numbers((4, 1), seed=1).expand(4, 5)
    out = torch.empty(3, 5)
    kernels("diopiMm", out, a, b)
    close(out, a @ b)


def test_mm_refuses_what_does_not_fit(kernels: Families) -> None:
    assert kernels.status("diopiMm", torch.empty(3, 5), numbers((3, 4)), numbers((3, 5))) == ERROR
    assert "4 columns and 3 rows" in kernels.last_error()
    bools = torch.ones(2, 2, dtype=torch.bool)
    assert kernels.status("diopiMm", bools.clone(), bools, bools) == DTYPE_NOT_SUPPORTED


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("beta", "alpha"), [(1.0, 1.0), (0.0, 2.0), (-0.5, 0.5), (2, 1)])
def test_addmm_broadcasts_its_input(kernels: Families, dtype: torch.dtype, beta: float, alpha: float) -> None:
    a, b = numbers((3, 4), dtype), numbers((4, 5), dtype, 1)
    for bias in (
        numbers((5,), dtype, 2),
        numbers((3, 5), dtype, 2),
        numbers((3, 1), dtype, 2),
        numbers((), dtype, 2),
    ):
        expected = torch.addmm(bias.double(), a.double(), b.double(), beta=beta, alpha=alpha)
        for layout in range(3):
            out = blank(expected.to(dtype), layout)
            kernels("diopiAddmm", out, bias, a, b, beta, alpha)
            close(out, expected, 3)


def test_addmm_ignores_its_input_when_beta_is_zero(kernels: Families) -> None:
    a, b, out = numbers((3, 4)), numbers((4, 5), seed=1), torch.full((3, 5), torch.nan)
    kernels("diopiAddmm", out, torch.full((5,), torch.nan), a, b, 0, 1)
    close(out, a @ b)


@pytest.mark.parametrize("beta", [0.0, 1.0, 2.5])
def test_addmm_of_empty_matrices_scales_its_input(kernels: Families, beta: float) -> None:
    bias, out = numbers((3, 5)), torch.full((3, 5), torch.nan)
    kernels("diopiAddmm", out, bias, torch.empty(3, 0), torch.empty(0, 5), beta, 1.0)
    close(out, beta * bias)


@pytest.mark.parametrize("dtype", FLOATS)
def test_batched_products(kernels: Families, dtype: torch.dtype) -> None:
    a, b, c = numbers((6, 3, 4), dtype), numbers((6, 4, 5), dtype, 1), numbers((6, 3, 5), dtype, 2)
    product = a.double() @ b.double()
    for x, y, layout in itertools.product(layouts(a), layouts(b), range(3)):
        out = blank(c, layout)
        kernels("diopiBmm", out, x, y)
        close(out, product, 3)
        kernels("diopiBaddbmm", out, c, x, y, 0.5, 2.0)
        close(out, 0.5 * c.double() + 2 * product, 3)
        inplace = blank(c, layout).copy_(c)
        kernels("diopiBaddbmmInp", inplace, x, y, 0.5, 2.0)
        close(inplace, 0.5 * c.double() + 2 * product, 3)


MATMUL_SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((1, 3, 4), (7, 4, 5)),
    ((2, 6, 3, 4), (2, 1, 4, 5)),
    ((0, 3, 4), (4, 5)),
    ((2, 3, 0), (0, 5)),
]


@pytest.mark.parametrize(("left", "right"), MATMUL_SHAPES)
def test_matmul_and_its_gradients(kernels: Families, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    base, other = numbers(left), numbers(right, seed=1)
    for x, y in itertools.product(layouts(base), layouts(other)):
        expected = torch.matmul(x, y)
        for layout in range(3):
            out = blank(expected, layout)
            kernels("diopiMatmul", out, x, y)
            close(out, expected)
        a, b = x.detach().clone().requires_grad_(), y.detach().clone().requires_grad_()
        result = torch.matmul(a, b)
        grad = numbers(tuple(result.shape), seed=2)
        result.backward(grad)
        grad_a, grad_b = blank(x, 0), blank(y, 1 if y.dim() > 1 else 0)
        kernels("diopiMatmulBackward", grad_a, grad_b, grad, x, y)
        close(grad_a, a.grad)
        close(grad_b, b.grad)
        kernels("diopiMatmulBackward", None, grad_b, grad, x, y)
        kernels("diopiMatmulBackward", grad_a, None, grad, x, y)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (2, 3, 5, 4), (0, 4)])
@pytest.mark.parametrize("with_bias", [True, False])
def test_linear_and_its_gradients(
    kernels: Families, dtype: torch.dtype, shape: tuple[int, ...], with_bias: bool
) -> None:
    x, w = numbers(shape, dtype), numbers((6, 4), dtype, 1)
    bias = numbers((6,), dtype, 2) if with_bias else None
    leaves = [t.double().requires_grad_() for t in (x, w, *([bias] if with_bias else []))]
    expected = F.linear(*leaves)
    grad = numbers(tuple(expected.shape), dtype, 3)
    expected.backward(grad.double())
    for layout in range(3):
        out = blank(expected.detach().to(dtype), layout)
        kernels("diopiLinear", out, list(layouts(x))[layout], list(layouts(w))[layout], bias)
        close(out, expected.detach(), 3)
        grads = [blank(x, layout), blank(w, layout), torch.empty(6, dtype=dtype) if with_bias else None]
        kernels("diopiLinearBackward", *grads, list(layouts(grad))[layout], x, list(layouts(w))[layout])
        for actual, leaf in zip(grads, leaves, strict=False):
            close(actual, leaf.grad, 3)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7, 8), (4, 3, 3, 2), {}),
    ((2, 3, 7, 8), (4, 3, 3, 3), {"stride": (2, 1), "padding": (1, 2)}),
    ((2, 4, 9, 9), (6, 2, 3, 3), {"groups": 2, "padding": (1, 1), "dilation": (2, 2)}),
    ((1, 6, 5, 5), (6, 1, 3, 3), {"groups": 6, "padding": (1, 1)}),
    ((2, 3, 7, 6), (6, 1, 3, 2), {"groups": 3, "stride": (2, 1), "padding": (2, 1), "dilation": (1, 2)}),
    ((3, 5, 4, 4), (7, 5, 1, 1), {}),
    ((3, 6, 4, 4), (4, 3, 1, 1), {"groups": 2}),
    ((2, 3, 4, 4), (4, 3, 1, 1), {"stride": (2, 2)}),
    ((0, 3, 4, 4), (4, 3, 2, 2), {}),
    # planes that are spread out: more filters than are summed up at once, windows enough for their gradients
    ((40, 9, 5, 6), (19, 9, 3, 3), {"padding": (1, 1)}),
    ((9, 4, 11, 12), (10, 2, 3, 5), {"groups": 2, "stride": (3, 2), "padding": (1, 2), "dilation": (1, 2)}),
    ((3, 2, 9, 530), (3, 2, 2, 3), {"padding": (0, 2), "stride": (1, 1)}),
    ((5, 2, 13, 14), (3, 2, 1, 1), {"stride": (2, 3)}),
    ((6, 3, 12, 9), (4, 3, 2, 2), {"padding": (4, 3), "stride": (2, 1)}),  # windows outside of the plane
]


def memory_formats(tensor: torch.Tensor) -> list[torch.Tensor]:
    return [
        tensor.contiguous(memory_format=torch.channels_last),
        tensor.contiguous(),
        list(layouts(tensor))[2],
    ]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("size", "weight_size", "options"), CONVOLUTIONS)
def test_convolution_and_its_gradients(
    kernels: Families,
    dtype: torch.dtype,
    size: tuple[int, ...],
    weight_size: tuple[int, ...],
    options: dict[str, Any],
) -> None:
    x, w, b = numbers(size, dtype), numbers(weight_size, dtype, 1), numbers(weight_size[:1], dtype, 2)
    leaves = [t.double().requires_grad_() for t in (x, w, b)]
    expected = F.conv2d(*leaves, **options)
    grad = numbers(tuple(expected.shape), dtype, 3)
    expected.backward(grad.double())
    tail = (
        options.get("stride", (1, 1)),
        options.get("padding", (0, 0)),
        options.get("dilation", (1, 1)),
        options.get("groups", 1),
    )
    for format_ in range(3):
        inputs = [memory_formats(t)[format_] for t in (x, w)]
        out = memory_formats(torch.full(expected.shape, 7.0, dtype=dtype))[format_]
        kernels("diopiConvolution2d", out, *inputs, b, *tail)
        close(out, expected.detach(), 8)
        kernels("diopiConvolution2d", out, *inputs, None, *tail)
        close(out, F.conv2d(x.double(), w.double(), **options), 8)
        grads = [torch.full_like(inputs[0], 7), torch.full_like(inputs[1], 7), torch.full_like(b, 7)]
        arguments = (memory_formats(grad)[format_], *inputs, None, *tail)
        kernels("diopiConvolution2dBackward", *grads, *arguments)
        for actual, leaf in zip(grads, leaves, strict=True):
            close(actual, leaf.grad, 16)
        for place in range(3):
            kernels(
                "diopiConvolution2dBackward",
                *[g if i == place else None for i, g in enumerate(grads)],
                *arguments,
            )


def test_convolution_in_several_pieces(kernels: Families) -> None:
    """Large enough that the unrolled windows of one batch do not fit into the workspace at once."""
    x, w = numbers((5, 8, 200, 200)), numbers((2, 8, 3, 3), seed=1)
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    expected = F.conv2d(a, b, padding=1)
    grad = numbers(tuple(expected.shape), seed=2)
    expected.backward(grad)
    out, grad_x, grad_w = torch.empty_like(expected), torch.empty_like(x), torch.empty_like(w)
    kernels("diopiConvolution2d", out, x, w, None, (1, 1), (1, 1), (1, 1), 1)
    close(out, expected.detach(), 10)
    kernels("diopiConvolution2dBackward", grad_x, grad_w, None, grad, x, w, None, (1, 1), (1, 1), (1, 1), 1)
    close(grad_x, a.grad, 10)
    torch.testing.assert_close(grad_w, b.grad, rtol=1e-3, atol=5e-3)


POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 8, 9), {"kernel_size": (3, 2), "stride": (2, 2)}),
    ((2, 70, 7, 7), {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)}),
    ((2, 3, 8, 9), {"kernel_size": (3, 3), "stride": (2, 3), "padding": (1, 1), "ceil_mode": True}),
    ((3, 8, 9), {"kernel_size": (2, 2), "stride": (1, 1)}),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES, torch.int32])
@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
@pytest.mark.parametrize(("size", "options"), POOLS)
def test_max_pool_and_its_gradient(
    kernels: Families,
    dtype: torch.dtype,
    dilation: tuple[int, int],
    size: tuple[int, ...],
    options: dict[str, Any],
) -> None:
    x = numbers(size, dtype)
    leaf = x.double().requires_grad_()
    expected, places = F.max_pool2d(leaf, **options, dilation=dilation, return_indices=True)
    tail = (
        options["kernel_size"],
        options["stride"],
        options.get("padding", (0, 0)),
        dilation,
        options.get("ceil_mode", False),
    )
    grad = numbers(tuple(expected.shape), dtype, 1)
    expected.backward(grad.double())
    for layout, variant in enumerate(layouts(x)):
        out, index = blank(expected.detach().to(dtype), layout), blank(places, layout)
        kernels("diopiMaxPool2dWithIndices", out, index, variant, *tail)
        close(out, expected.detach())
        if dtype.is_floating_point:
            assert torch.equal(index, places)
        kernels("diopiMaxPool2d", out, variant, *tail)
        close(out, expected.detach())
        grad_input = blank(x, layout)
        kernels("diopiMaxPool2dBackward", grad_input, list(layouts(grad))[layout], variant, *tail, places)
        close(grad_input, leaf.grad, 2)


def test_max_pool_keeps_nan(kernels: Families) -> None:
    x = torch.full((1, 1, 3, 3), -torch.inf)
    x[0, 0, 1, 1] = torch.nan
    out, index = torch.empty(1, 1, 1, 1), torch.empty(1, 1, 1, 1, dtype=torch.int64)
    kernels("diopiMaxPool2dWithIndices", out, index, x, (3, 3), (1, 1), (0, 0), (1, 1), False)
    assert out.isnan().all() and index.item() == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("stride", [(2, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize(
    ("kernel", "dilation"), [((3, 3), (1, 1)), ((2, 5), (2, 1)), ((1, 4), (1, 2)), ((2, 100), (1, 1))]
)
def test_max_pool_of_long_lines_with_ties(
    kernels: Families, dtype: torch.dtype, stride: tuple[int, int], kernel: tuple[int, int], dilation: tuple[int, int]
) -> None:
    """Several strips of windows a line; values that are often equal, not a number or infinite."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(-3, 4, (2, 3, 9, 300), generator=generator).to(dtype)
    if dtype.is_floating_point:
        x[torch.rand(x.shape, generator=generator) < 0.02] = torch.nan
        x[torch.rand(x.shape, generator=generator) < 0.5] = -torch.inf
    tail = (kernel, stride, (kernel[0] // 2, 1), dilation, False)
    expected, places = F.max_pool2d(x, kernel, stride, tail[2], dilation, return_indices=True)
    out, index = torch.empty_like(expected), torch.empty_like(places)
    kernels("diopiMaxPool2dWithIndices", out, index, x, *tail)
    torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(index, places)


@pytest.fixture(scope="module", params=[FLAGS, TEAMS], ids=["alone", "teams"])
def pools(request: pytest.FixtureRequest) -> Families:
    return Families(build(["max_pooling"], request.param))


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64])
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((2, 16, 7, 9), {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)}),
        ((1, 24, 6, 5), {"kernel_size": (2, 3), "stride": (1, 2), "dilation": (2, 1)}),
        ((3, 8, 8, 8), {"kernel_size": (2, 2), "stride": (3, 3)}),
        ((2, 12, 5, 5), {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)}),
    ],
)
def test_max_pool_of_channels_side_by_side(
    pools: Families, dtype: torch.dtype, size: tuple[int, ...], options: dict[str, Any]
) -> None:
    """A GPU takes them by packs, as far as they are even; with ties and, of floats, NaN."""
    generator = torch.Generator().manual_seed(5)
    x = torch.randint(-4, 5, size, generator=generator).to(dtype)
    if dtype.is_floating_point:
        x[torch.rand(size, generator=generator) < 0.03] = torch.nan
    x = x.contiguous(memory_format=torch.channels_last)
    expected, places = F.max_pool2d(x.double(), **options, return_indices=True)
    shifts = options.get("padding", (0, 0)), options.get("dilation", (1, 1))
    tail = (options["kernel_size"], options["stride"], *shifts, False)
    innermost = {"memory_format": torch.channels_last}
    out, index = torch.empty_like(expected, dtype=dtype, **innermost), torch.empty_like(places, **innermost)
    pools("diopiMaxPool2dWithIndices", out, index, x, *tail)
    torch.testing.assert_close(out.double(), expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(index, places)
    only = torch.empty_like(out)
    pools("diopiMaxPool2d", only, x, *tail)
    torch.testing.assert_close(only, out, rtol=0, atol=0, equal_nan=True)
    grad = torch.randint(-3, 4, tuple(out.shape), generator=generator).to(dtype).contiguous(**innermost)
    wanted = (
        torch.zeros(size, dtype=torch.float64).flatten(2).scatter_add_(2, places.flatten(2), grad.double().flatten(2))
    )
    grad_input = torch.empty_like(x)
    pools("diopiMaxPool2dBackward", grad_input, grad, x, *tail, index)
    torch.testing.assert_close(grad_input.double(), wanted.view(size), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("divisor", [None, 5])
@pytest.mark.parametrize(("size", "options"), POOLS)
def test_avg_pool_and_its_gradient(
    kernels: Families,
    dtype: torch.dtype,
    count_include_pad: bool,
    divisor: int | None,
    size: tuple[int, ...],
    options: dict[str, Any],
) -> None:
    x = numbers(size, dtype)
    leaf = x.double().requires_grad_()
    expected = F.avg_pool2d(leaf, **options, count_include_pad=count_include_pad, divisor_override=divisor)
    grad = numbers(tuple(expected.shape), dtype, 1)
    expected.backward(grad.double())
    tail = (
        options["kernel_size"],
        options["stride"],
        options.get("padding", (0, 0)),
        options.get("ceil_mode", False),
        count_include_pad,
        divisor,
    )
    for layout, variant in enumerate(layouts(x)):
        out = blank(expected.detach().to(dtype), layout)
        kernels("diopiAvgPool2d", out, variant, *tail)
        close(out, expected.detach(), 2)
        grad_input = blank(x, layout)
        kernels("diopiAvgPool2dBackward", grad_input, list(layouts(grad))[layout], variant, *tail)
        close(grad_input, leaf.grad, 2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("output_size", [(1, 1), (3, 2), (7, 5), (11, 12)])
def test_adaptive_avg_pool_and_its_gradient(
    kernels: Families, dtype: torch.dtype, output_size: tuple[int, int]
) -> None:
    x = numbers((2, 3, 7, 9), dtype)
    leaf = x.double().requires_grad_()
    expected = F.adaptive_avg_pool2d(leaf, output_size)
    grad = numbers(tuple(expected.shape), dtype, 1)
    expected.backward(grad.double())
    for layout, variant in enumerate(layouts(x)):
        out = blank(expected.detach().to(dtype), layout)
        kernels("diopiAdaptiveAvgPool2d", out, variant, output_size)
        close(out, expected.detach(), 2)
        grad_input = blank(x, layout)
        kernels("diopiAdaptiveAvgPool2dBackward", grad_input, list(layouts(grad))[layout], variant)
        close(grad_input, leaf.grad, 2)


@pytest.mark.parametrize("p", [0.5, 2.0, float("inf")])
def test_distances_and_their_gradient(kernels: Families, p: float) -> None:
    left, right = numbers((2, 37, 19), torch.float64), numbers((2, 5, 19), torch.float64, seed=1)
    leaf = left.clone().requires_grad_()
    expected = torch.cdist(leaf, right, p=p)
    grad = numbers((2, 37, 5), torch.float64, seed=2)
    expected.backward(grad)
    out, grad_input = blank(expected.detach(), 0), blank(left, 0)
    kernels("diopiCdist", out, left, right, p, None)
    close(out, expected.detach())
    kernels("diopiCdistBackward", grad_input, grad, left, right, p, out)
    close(grad_input, leaf.grad)
