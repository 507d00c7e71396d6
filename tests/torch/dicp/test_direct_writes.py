"""What is computed only to be copied into an argument is written there at once, and nothing else sees it too early."""

from collections.abc import Callable
from typing import Any

import pytest

Function = Callable[..., Any]


def moved(torch: Any, x: Any, w: Any) -> Any:
    """The new value is a product, which no loop takes in."""
    x.copy_(w @ w)


def decayed(torch: Any, x: Any, w: Any) -> Any:
    """The new value needs the old one, element by element."""
    x.mul_(0.5).add_(w)
    return w @ x


def read_before(torch: Any, x: Any, w: Any) -> Any:
    """The old value is read between the making of the new one and the copy."""
    new = w @ w
    old = (x.t() @ w).sum(0)
    x.copy_(new)
    return old


def read_by_the_call(torch: Any, x: Any, w: Any) -> Any:
    x.copy_(x @ w)


def turned(torch: Any, x: Any, w: Any) -> Any:
    x.copy_(x.t() * w)


def returned_too(torch: Any, x: Any, w: Any) -> Any:
    new = w @ w
    x.copy_(new)
    return new


def into_a_part(torch: Any, x: Any, w: Any) -> Any:
    x[1:].copy_((w @ w)[1:])


def converted(torch: Any, x: Any, w: Any) -> Any:
    x.copy_((w @ w).double())


def copies_of(report: Any) -> int:
    """Values that are copied by launches that do nothing else."""
    from dicp.program import Kernel

    loops = [i for i in report.program.instructions if isinstance(i, Kernel)]
    return sum(len(i.results) for i in loops if all(step.kernel == "copy" for step in i.steps))


# The copies that are left.
CASES: dict[str, tuple[Function, int]] = {
    "a product": (moved, 0),
    "the same elements": (decayed, 0),
    "read before the copy": (read_before, 1),
    "read by the call": (read_by_the_call, 1),
    "read in another order": (turned, 1),
    "returned, too": (returned_too, 1),
    "a part": (into_a_part, 1),
    "another dtype": (converted, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_arguments_end_as_in_eager_mode(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    function, copies = CASES[name]
    x, w = torch.randn(8, 8), torch.randn(8, 8)
    there, weight = x.to("dipu"), w.to("dipu")
    expected, found = function(torch, x, w), compiled(lambda x, w: function(torch, x, w))(there, weight)
    torch.testing.assert_close(there.cpu(), x)
    if expected is not None:
        torch.testing.assert_close(found.cpu(), expected)
    (report,) = reports()
    assert copies_of(report) == copies, report.text()


def test_an_argument_that_others_read_keeps_its_value_for_them(torch: Any, compiled: Any) -> None:
    def run(x: Any, w: Any) -> Any:
        before = x.t().contiguous()
        x.copy_(w @ w)
        return before, x + 1

    x, w = torch.randn(8, 8), torch.randn(8, 8)
    there = x.to("dipu")
    expected, found = run(x, w), compiled(run)(there, w.to("dipu"))
    for one, other in zip((*found, there), (*expected, x), strict=True):
        torch.testing.assert_close(one.cpu(), other)


# Of products, (8, 8) each, what is made of them, and how many copies are left.
WHOLES: dict[str, tuple[Function, int]] = {
    "rows": (lambda torch, a, b, c: torch.cat((a, b, c), 0), 0),
    "columns": (lambda torch, a, b, c: torch.cat((a, b, c), 1), 0),
    "columns of several widths": (lambda torch, a, b, c: torch.cat((a, torch.cat((b, c), 1)), 1), 0),
    "rows between each other": (lambda torch, a, b, c: torch.stack((a, b, c), 1), 0),
    "a stack that is turned": (lambda torch, a, b, c: torch.stack((a, b, c)).transpose(0, 1).contiguous(), 0),
    "heads": (
        lambda torch, a, b, c: torch.stack([x.view(2, 4, 2, 4) for x in (a, b, c)])
        .permute(1, 2, 0, 3, 4)
        .reshape(8, 24),
        0,
    ),
    "elements between each other": (lambda torch, a, b, c: torch.stack((a, b, c), 2), 3),
    "a turned part": (lambda torch, a, b, c: torch.cat((a, b.t(), c), 0), 1),
    "heads of another order": (
        lambda torch, a, b, c: torch.cat([x.view(4, 2, 8).transpose(0, 1) for x in (a, b, c)], 2),
        3,
    ),
    "a part that is read": (lambda torch, a, b, c: torch.cat((a, b, c @ b), 1), 1),
    "a part twice": (lambda torch, a, b, c: torch.cat((a, b, a), 1), 1),
}


@pytest.mark.parametrize("name", WHOLES)
def test_parts_are_made_where_the_whole_is(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    """A function of a library leaves gaps between rows that it writes, but writes no other order, and reads none."""
    join, copies = WHOLES[name]
    given = [torch.randn(8, 8) for _ in range(3)]

    given.append(torch.randn(join(torch, *given).shape[-1], 2))

    def function(a: Any, b: Any, c: Any, w: Any) -> Any:
        return join(torch, a @ b, b @ c, c @ a) @ w

    there = [value.to("dipu") for value in given]
    torch.testing.assert_close(compiled(function)(*there).cpu(), function(*given), rtol=1e-4, atol=1e-4)
    (report,) = reports()
    assert copies_of(report) == copies, report.text()


@pytest.mark.parametrize(
    ("parts", "copies"), [((0, 1, 2), 0), ((2, -2, 0), 0), ((0, 1), None)], ids=["all", "in any order", "some"]
)
def test_gradients_of_what_was_selected(
    torch: Any, compiled: Any, reports: Any, parts: tuple[int, ...], copies: int | None
) -> None:
    """They are parts of one gradient, if nothing was left out."""

    def function(x: Any, w: Any) -> Any:
        given = x.view(8, 3, 8)
        return sum(((given[:, at] @ w) ** 2).sum() for at in parts)

    x, w = torch.randn(8, 24), torch.randn(8, 8)
    leaf, there = x.clone().requires_grad_(), x.to("dipu").requires_grad_()
    function(leaf, w).backward()
    compiled(function)(there, w.to("dipu")).backward()
    torch.testing.assert_close(there.grad.cpu(), leaf.grad, rtol=1e-4, atol=1e-4)
    _, backward = reports()
    selects = [i for i in backward.program.instructions if "select_backward" in " ".join(i.names)]
    assert bool(selects) == (copies is None)
    if copies is not None:
        assert copies_of(backward) == copies, backward.text()
