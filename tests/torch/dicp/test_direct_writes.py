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


# The copies that are left: launches that do nothing but copy.
CASES: dict[str, tuple[Function, int]] = {
    "a product": (moved, 0),
    "the same elements": (decayed, 0),
    "read before the copy": (read_before, 1),
    "read by the call": (read_by_the_call, 1),
    "read in another order": (turned, 1),
    "returned, too": (returned_too, 1),
    "a part": (into_a_part, 2),
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
    from dicp.program import Kernel

    left = [
        i for i in report.program.instructions if isinstance(i, Kernel) and all(s.kernel == "copy" for s in i.steps())
    ]
    assert len(left) == copies, report.text()


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
