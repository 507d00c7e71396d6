"""Wrappers: promotion, broadcasting, out= and in-place forms, and the messages are torch's own."""

from typing import Any

import pytest

ADDENDS = {
    "int and float": ("torch.ones(3, dtype=torch.int32)", "torch.ones(3)"),
    "half and float": ("torch.ones(3, dtype=torch.half)", "torch.ones(2, 3)"),
    "scalar left": ("torch.tensor(2.0)", "torch.ones(3)"),
    "scalar right": ("torch.ones(3)", "torch.tensor(2)"),
    "broadcast": ("torch.ones(3, 1)", "torch.arange(4.0)"),
    "bool and bool": ("torch.tensor([True, False])", "torch.tensor([True, True])"),
    "empty": ("torch.ones(0, 3)", "torch.ones(3)"),
    "strided": ("torch.arange(12.0).reshape(3, 4).t()", "torch.arange(12.0).reshape(4, 3)"),
    "complex": ("torch.ones(2, dtype=torch.complex64)", "torch.ones(2)"),
}


@pytest.mark.parametrize("case", ADDENDS)
def test_add_agrees_with_the_cpu(torch: Any, case: str) -> None:
    a, b = (eval(text, {"torch": torch}) for text in ADDENDS[case])
    expected, got = a + b, a.to("dipu") + b.to("dipu")
    assert got.dtype == expected.dtype and got.stride() == expected.stride() and torch.equal(got.cpu(), expected)


def test_cpu_scalars_join(torch: Any) -> None:
    x = torch.ones(3, device="dipu")
    for result in (x + torch.tensor(2.0), torch.tensor(2.0) + x, x + 2, 2 + x):
        assert result.cpu().tolist() == [3, 3, 3]
    assert (x + 1j).dtype == torch.complex64


def test_out_of_another_dtype_and_layout(torch: Any) -> None:
    x = torch.ones(3, device="dipu")
    wide = torch.empty(3, dtype=torch.float64, device="dipu")
    strided = torch.zeros(6, device="dipu")
    torch.add(x, x, out=wide)
    torch.add(x, x, out=strided[::2])
    assert wide.cpu().tolist() == [2, 2, 2] and strided.cpu().tolist() == [2, 0, 2, 0, 2, 0]


def test_in_place(torch: Any) -> None:
    x = torch.ones(3, device="dipu")
    x += x
    assert x.cpu().tolist() == [2, 2, 2]
    y = torch.ones(2, 3, device="dipu").t()
    y.add_(torch.ones(2, device="dipu"), alpha=3)
    assert y.cpu().tolist() == [[4, 4]] * 3


def text_of(torch: Any, program: str, device: str) -> str:
    with pytest.raises(RuntimeError) as raised:
        eval(program, {"torch": torch, "one": lambda *shape: torch.ones(*shape).to(device)})
    return str(raised.value).splitlines()[0].replace("dipu:0", "cpu")


@pytest.mark.parametrize(
    "program",
    [
        "one(3) + one(4)",
        "torch.add(one(3), one(3), out=one(3).int())",
        "one(3).int().add_(one(3))",
        "one(3).add_(one(2, 3))",
        "torch.mm(one(2, 3), one(2, 3))",
        "torch.mm(one(2), one(2, 3))",
        "one(1).expand(3).add_(1)",
        "torch.add(one(3).int(), one(3).int(), alpha=1.5)",
        "(lambda x: torch.add(x[1:], x[1:], out=x[:-1]))(one(4))",
    ],
)
def test_errors_read_like_torchs(torch: Any, program: str) -> None:
    assert text_of(torch, program, "dipu") == text_of(torch, program, "cpu")


def test_tensors_of_two_devices(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(3, device="dipu") + torch.ones(3)
