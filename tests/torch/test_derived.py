"""Operators written with others: special values, halves and integers as on the CPU, in all three forms."""

from collections.abc import Callable
from typing import Any

import pytest

INF, NAN = float("inf"), float("nan")
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -1.5, 3.0, -3.0, 1e-30, 1e30, INF, -INF, NAN]

UNARY = ["trunc", "frac", "round", "signbit", "exp2", "sinc", "nan_to_num", "special.entr", "nn.functional.softplus"]
UNARY += ["nn.functional.mish", "nn.functional.elu", "nn.functional.hardsigmoid", "nn.functional.logsigmoid", "angle"]
UNARY += ["nn.functional.hardshrink", "nn.functional.softshrink", "logit"]
BINARY = ["atan2", "copysign", "fmod", "fmax", "fmin", "hypot", "logaddexp", "logaddexp2", "xlogy", "special.xlog1py"]
BINARY += ["heaviside", "logical_xor"]


def named(torch: Any, name: str) -> Callable[..., Any]:
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def agree(torch: Any, ours: Any, wanted: Any) -> None:
    host = ours.cpu()
    torch.testing.assert_close(host, wanted, equal_nan=True, rtol=1e-5, atol=1e-6)
    if wanted.is_floating_point():
        assert torch.equal(host.signbit() & (host == 0), wanted.signbit() & (wanted == 0)), (host, wanted)


@pytest.mark.parametrize("name", UNARY)
def test_special_values(torch: Any, name: str) -> None:
    operator, x = named(torch, name), torch.tensor(SPECIAL)
    torch.dipu.fallback.reset()
    ours = operator(x.to("dipu"))
    assert torch.dipu.fallback.report() == []
    wanted = operator(x)
    host = ours.cpu()
    torch.testing.assert_close(host, wanted, equal_nan=True, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_special_values_in_pairs(torch: Any, name: str) -> None:
    operator = named(torch, name)
    x, y = torch.meshgrid(torch.tensor(SPECIAL), torch.tensor(SPECIAL), indexing="ij")
    torch.dipu.fallback.reset()
    ours = operator(x.to("dipu"), y.to("dipu"))
    assert torch.dipu.fallback.report() == []
    torch.testing.assert_close(ours.cpu(), operator(x, y), equal_nan=True, rtol=1e-5, atol=1e-6)


ROUNDED_ONCE = {
    "sinc": lambda t, x, y: t.sinc(x),
    "hypot": lambda t, x, y: t.hypot(x, y),
    "atan2": lambda t, x, y: t.atan2(x, y),
    "logaddexp": lambda t, x, y: t.logaddexp(x, y),
    "logaddexp2": lambda t, x, y: t.logaddexp2(x, y),
    "xlogy": lambda t, x, y: t.xlogy(x, y.abs()),
    "xlog1py": lambda t, x, y: t.special.xlog1py(x, y.abs()),
    "entr": lambda t, x, y: t.special.entr(x.abs()),
    "round": lambda t, x, y: t.round(x, decimals=1),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_halves_are_rounded_once(torch: Any, name: str, dtype: str) -> None:
    x = torch.linspace(-60, 60, 1601).to(getattr(torch, dtype))
    y = (x.flip(0) * 0.7 + 1).to(x.dtype)
    wanted = ROUNDED_ONCE[name](torch, x.float(), y.float()).to(x.dtype)
    ours = ROUNDED_ONCE[name](torch, x.to("dipu"), y.to("dipu")).cpu()
    torch.testing.assert_close(ours, wanted, rtol=torch.finfo(x.dtype).eps, atol=1e-6)


def test_signs_of_zero(torch: Any) -> None:
    x, y = torch.meshgrid(torch.tensor([0.0, -0.0, 1.0, -1.0]), torch.tensor([0.0, -0.0, 2.0, -2.0]), indexing="ij")
    for operator in (torch.copysign, torch.atan2):
        agree(torch, operator(x.to("dipu"), y.to("dipu")), operator(x, y))


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "float16", "bfloat16", "float64"])
def test_dtypes_of_remainders_and_roundings(torch: Any, dtype: str) -> None:
    kind = getattr(torch, dtype)
    x = torch.tensor([7, 5, 9, 3, 1, 8]).to(kind)
    y = torch.tensor([3, 2, 4, 5, 1, 7]).to(kind)
    if kind.is_signed:
        x[1], y[2], x[3], y[3] = -x[1], -y[2], -x[3], -y[3]
    for operator in (torch.fmod, torch.copysign, torch.hypot if kind.is_floating_point else torch.bitwise_xor):
        ours = operator(x.to("dipu"), y.to("dipu")).cpu()
        assert ours.dtype == operator(x, y).dtype
        torch.testing.assert_close(ours, operator(x, y), rtol=1e-2, atol=0)
    for operator in (torch.trunc, torch.round):
        assert torch.equal(operator(x.to("dipu")).cpu(), operator(x))


def test_forms_in_place_and_out(torch: Any) -> None:
    x = torch.tensor([1.5, -2.5, 0.25])
    ours = x.to("dipu")
    assert ours.round_() is ours and ours.cpu().tolist() == x.round().tolist()
    out = torch.empty(0, device="dipu")
    assert torch.frac(x.to("dipu"), out=out) is out and out.cpu().tolist() == torch.frac(x).tolist()
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        torch.hypot(x.to("dipu"), x.to("dipu"), out=torch.empty(3, dtype=torch.int64, device="dipu"))
    with pytest.raises(RuntimeError, match=r"doesn't match the broadcast shape \[2, 3\]"):
        x.to("dipu").atan2_(torch.ones(2, 3, device="dipu"))


@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [1.0, 4.0, 2.0, 3.0], [NAN, 1.0, 2.0], [INF, -INF, 0.0, NAN]])
def test_medians_beside_missing_numbers(torch: Any, values: list[float]) -> None:
    x = torch.tensor([values, values[::-1]])
    for operator in (torch.median, torch.nanmedian):
        torch.testing.assert_close(operator(x.to("dipu")).cpu(), operator(x), equal_nan=True)
        ours, wanted = operator(x.to("dipu"), dim=1), operator(x, dim=1)
        torch.testing.assert_close(ours.values.cpu(), wanted.values, equal_nan=True)
        torch.testing.assert_close(ours.indices.cpu(), wanted.indices)


@pytest.mark.parametrize("padding", [(1, 2), (1, 2, 0, 1), (2, 1, 1, 0, 0, 1)])
@pytest.mark.parametrize("mode", ["reflect", "replicate"])
def test_padding_and_its_gradient(torch: Any, padding: tuple[int, ...], mode: str) -> None:
    values = torch.arange(2 * 2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 2, 3, 4, 5)
    for _ in range(3 - len(padding) // 2):
        values = values[:, :, 0]
    results = []
    for device in ("cpu", "dipu"):
        x = values.clone().to(device).requires_grad_()
        y = torch.nn.functional.pad(x, padding, mode)
        (y * torch.arange(y.numel(), dtype=torch.float32).reshape(y.shape).to(device)).sum().backward()
        results.append((y.detach().cpu(), x.grad.cpu()))
    torch.testing.assert_close(results[1], results[0])


def test_integers_are_counted_in_bins(torch: Any) -> None:
    """Mixtures of experts count their tokens so, which the CPU does for floats alone."""
    tokens = torch.tensor([0, 3, 1, 3, 3], dtype=torch.int32, device="dipu")
    assert torch.histc(tokens, bins=4, min=0, max=3).cpu().tolist() == [1, 1, 0, 3]


def test_complex_numbers_go_to_the_cpu_at_once(torch: Any) -> None:
    x = torch.tensor([1 + 2j, -3j])
    torch.dipu.fallback.reset()
    assert torch.allclose(torch.linalg.vector_norm(x.to("dipu")).cpu(), torch.linalg.vector_norm(x))
    assert torch.equal(x.to("dipu").conj().cpu(), x.conj().resolve_conj())
    copied = torch.empty(2, dtype=torch.complex64, device="dipu")
    copied.copy_(x.to("dipu").conj())
    assert copied.cpu().tolist() == x.conj().tolist()
    assert [row.operator for row in torch.dipu.fallback.report()] == ["aten::linalg_vector_norm"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("shape", "dim"), [((5, 4), 0), ((5, 4), 1), ((3, 2, 6), 0), ((3, 2, 6), 2), ((7,), 0)])
def test_weight_norm(torch: Any, shape: tuple[int, ...], dim: int, dtype: str) -> None:
    generator, kind = torch.Generator().manual_seed(sum(shape)), getattr(torch, dtype)
    sizes = [size if d == dim else 1 for d, size in enumerate(shape)]
    drawn = [torch.randn(size, generator=generator).to(kind) for size in (shape, sizes, shape)]

    def normed(device: str, kind: Any) -> list[Any]:
        v, g, grad = (each.to(device, kind) for each in drawn)
        leaves = [v.requires_grad_(), g.requires_grad_()]
        out = torch._weight_norm(*leaves, dim)
        return [out, *torch.autograd.grad(out, leaves, grad)]

    torch.dipu.fallback.reset()
    found = normed("dipu", kind)
    assert torch.dipu.fallback.report() == []
    tolerance = {"float64": 1e-12, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
    for ours, right in zip(found, normed("cpu", torch.float64), strict=True):
        assert ours.dtype == kind
        torch.testing.assert_close(ours.cpu().double(), right, rtol=tolerance, atol=tolerance)
    saved = [
        torch._weight_norm_interface(*(each.to(device) for each in drawn[:2]), dim)[1] for device in ("dipu", "cpu")
    ]
    assert saved[0].dtype == saved[1].dtype
    torch.testing.assert_close(saved[0].cpu(), saved[1], rtol=tolerance, atol=tolerance)
