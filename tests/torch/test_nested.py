"""Nested tensors: strided ones lie on the device and the CPU computes; jagged ones are plain tensors."""

import warnings
from typing import Any

import pytest


@pytest.fixture
def parts(torch: Any) -> list[Any]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(rows, 4, generator=generator) for rows in (2, 3)]


def nested(torch: Any, parts: list[Any], device: str) -> Any:
    leaves = [part.to(device, copy=True).requires_grad_() for part in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls the strided layout a prototype
        return torch.nested.as_nested_tensor(leaves), leaves


def test_a_nested_tensor_is_made_and_taken_apart(torch: Any, parts: list[Any]) -> None:
    value, _ = nested(torch, parts, "dipu")
    assert value.is_nested and value.device == torch.device("dipu:0") and value.size(0) == 2
    for found, part in zip(value.unbind(), parts, strict=True):
        assert found.device.type == "dipu" and torch.equal(found.cpu(), part)
    assert all(torch.equal(a, b) for a, b in zip(value.cpu().unbind(), parts, strict=True))


def test_it_moves_both_ways_and_is_written_in_place(torch: Any, parts: list[Any]) -> None:
    with torch.no_grad():
        host, _ = nested(torch, parts, "cpu")
        value = host.detach().to("dipu")
        kept = value
        value += 1
        assert value is kept and value.device.type == "dipu"
        assert all(torch.equal(a.cpu(), b + 1) for a, b in zip(value.unbind(), parts, strict=True))
        assert all(torch.equal(a.cpu(), b + 1) for a, b in zip(value.clone().unbind(), parts, strict=True))


@pytest.mark.parametrize(
    "function",
    [
        lambda torch, x: torch.nested.to_padded_tensor(x * 2, 0.0),
        lambda torch, x: torch.nested.to_padded_tensor(
            torch.nn.functional.linear(x, torch.ones(3, 4, device=x.device)), -1.0
        ),
        lambda torch, x: torch.nested.to_padded_tensor(torch.softmax(x, -1), 0.0),
        lambda torch, x: torch.nested.to_padded_tensor(x.transpose(1, 2).contiguous(), 5.0),
    ],
    ids=["multiply", "linear", "softmax", "transpose"],
)
def test_results_and_gradients_are_those_of_the_cpu(torch: Any, parts: list[Any], function: Any) -> None:
    results = []
    for device in ("cpu", "dipu"):
        value, leaves = nested(torch, parts, device)
        out = function(torch, value)
        assert out.device.type == device
        (out * out).sum().backward()
        results.append((out.detach().cpu(), [leaf.grad.cpu() for leaf in leaves]))
    torch.testing.assert_close(results[1], results[0])


def test_what_runs_on_the_cpu_is_in_the_report(torch: Any, parts: list[Any]) -> None:
    value, _ = nested(torch, parts, "dipu")
    torch.dipu.fallback.reset()
    value.detach().mul(2)
    (row,) = [row for row in torch.dipu.fallback.report() if row.operator == "aten::mul.Tensor"]
    assert row.count == 1 and row.bytes > 0
    with torch.dipu.fallback.strict(), pytest.raises(NotImplementedError, match=r"aten::mul\.Tensor would fall back"):
        value.detach().mul(2)


def test_a_jagged_one_computes_on_the_device(torch: Any, parts: list[Any]) -> None:
    value = torch.nested.nested_tensor([part.to("dipu") for part in parts], layout=torch.jagged, device="dipu")
    torch.dipu.fallback.reset()
    out = (value * 2).values()
    assert out.device.type == "dipu" and torch.equal(out.cpu(), torch.cat(parts) * 2)
    assert torch.dipu.fallback.report() == []
