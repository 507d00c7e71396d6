"""What shares memory in torch's trace has one root in a program, and keeps what it says after later allocations."""

from collections.abc import Callable
from typing import Any

import pytest

Function = Callable[[Any], Any]

# Of a complex tensor of 8 by 8.
COMPLEX: dict[str, Callable[[Any], Function]] = {
    "conjugate": lambda t: lambda z: (z * 2).conj(),
    "conjugate of a transform": lambda t: lambda z: t.fft.fft(z).conj(),
    "part of a conjugate": lambda t: lambda z: (z * 2).conj()[1:, ::2].t(),
    "imaginary part": lambda t: lambda z: ((z * 2).imag, (z * 3).conj().imag),
    "pairs": lambda t: lambda z: t.view_as_real(z * 2),
    "pairs and back": lambda t: lambda z: t.view_as_complex(t.view_as_real(z * 2) + 1)[2:],
    "read after other products": lambda t: lambda z: (lambda v, w: v + w @ w)((z @ z).conj(), z @ (z + 1)),
    "conjugate of a conjugate": lambda t: lambda z: (z * 2).conj().t().conj(),
    "beside its base": lambda t: lambda z: (lambda y: (y, y.conj(), y.conj().t()))(z @ z),
    "of an argument": lambda t: lambda z: (z.conj(), z.t().conj(), z.real),
    "written through": lambda t: lambda z: (lambda y: (y.conj().mul_(2j), y))(z @ z)[1],
    "the base is written": lambda t: lambda z: (lambda y, v: (y.add_(1), v + z))(*(lambda y: (y, y.conj()))(z @ z))[1],
}
# Of a float tensor of 8 by 8.
REAL: dict[str, Callable[[Any], Function]] = {
    "negative": lambda t: lambda x: t._neg_view(x @ x),
    "negative, read later": lambda t: lambda x: (lambda v, w: v + x @ w)(t._neg_view(x @ x), x @ (x + 1)),
    "part of a negative": lambda t: lambda x: t._neg_view(x @ x).t()[1:],
    "another width": lambda t: lambda x: ((x @ x).view(t.int16), (x @ x).view(t.int64)),
    "a part in another width": lambda t: lambda x: (x @ x)[2:].view(t.int16) + 1,
    "another dtype of one width": lambda t: lambda x: (x @ x).view(t.int32)[1:],
}


def _flat(value: Any) -> list[Any]:
    return [value] if not isinstance(value, tuple | list) else [x for item in value for x in _flat(item)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", [*COMPLEX, *REAL])
def test_views_keep_what_they_say(torch: Any, compiled: Any, name: str, dynamic: bool, monkeypatch: Any) -> None:
    monkeypatch.setenv("DICP_CHECK", "0" if dynamic else "1")
    functions = {**COMPLEX, **REAL}
    # Of whole numbers products are exact, and so are their bits.
    x = torch.randn(8, 8, dtype=torch.complex64) if name in COMPLEX else torch.randint(4, (8, 8)).float()
    expected = _flat(torch.compile(functions[name](torch), backend="aot_eager")(x.clone()))
    found = _flat(compiled(functions[name](torch), dynamic=dynamic)(x.to("dipu")))
    taken = [torch.full((16, 16), 7.0, device="dipu") for _ in range(16)]
    for one, other in zip(found, expected, strict=True):
        assert (one.is_conj(), one.is_neg(), one.stride()) == (other.is_conj(), other.is_neg(), other.stride())
        torch.testing.assert_close(one.resolve_conj().resolve_neg().cpu(), other.resolve_conj().resolve_neg())
    assert len(taken) == 16


def test_a_part_whose_size_data_decide_keeps_its_memory(torch: Any, compiled: Any) -> None:
    def run(x: Any, n: Any) -> Any:
        length = n.item()
        torch._check(length >= 0)
        torch._check(length <= x.size(0))
        part = (x @ x)[:length]
        return part, (x @ (x + 1)) @ x

    x, n = torch.randn(8, 8), torch.tensor(3)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        part, _ = compiled(run)(x.to("dipu"), n)
    taken = [torch.full((8, 8), 7.0, device="dipu") for _ in range(16)]
    torch.testing.assert_close(part.cpu(), (x @ x)[:3])
    assert len(taken) == 16


@pytest.mark.parametrize("how", ["conj", "neg"])
def test_gradients_may_come_as_conjugates_and_negatives(torch: Any, compiled: Any, how: str) -> None:
    gradients = []
    for device in ("cpu", "dipu"):
        z = torch.linspace(1, 2, 6).to(torch.complex64).mul(1 + 2j).to(device).requires_grad_()
        given = torch.linspace(0, 1, 6).to(torch.complex64).mul(2 - 1j).to(device)
        function = (lambda z: z * z * 3) if device == "cpu" else compiled(lambda z: z * z * 3)
        for _ in range(3):  # from the second step on, past AOTAutograd
            z.grad = None
            function(z).backward(given.conj() if how == "conj" else torch._neg_view(given))
        gradients.append(z.grad.cpu())
    torch.testing.assert_close(*gradients)


def test_the_check_finds_values_that_meet_in_memory(torch: Any, compiled: Any, reports: Any) -> None:
    from dicp.debug.memory import MemoryConflict, check_memory
    from dicp.program import RootKind

    x = torch.randn(4, 4, device="dipu")
    compiled(lambda x: (x @ x).t() @ ((x + 1) @ x))(x)
    report = reports()[0]
    check_memory(report.program, report.graph.graph)
    for root in report.program.roots():
        if root.kind is RootKind.ARENA:
            root.offset = 0
    with pytest.raises(MemoryConflict, match="of the arena"):
        check_memory(report.program, report.graph.graph)
