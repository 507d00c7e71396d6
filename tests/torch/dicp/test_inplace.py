"""Library functions work in place where their input dies or is what they write, and nowhere else."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.torch.dicp.programs import calls_of

Function = Callable[..., Any]


def dies(torch: Any, x: Any, at: Any, src: Any) -> Any:
    return (x * 2).scatter(1, at, src) + 1


def lives(torch: Any, x: Any, at: Any, src: Any) -> Any:
    y = x * 2
    return y.scatter(1, at, src) + y


def is_the_source(torch: Any, x: Any, at: Any, src: Any) -> Any:
    y = x * 2
    return y.scatter(1, at, y.clone() + y)


def reads_itself(torch: Any, x: Any, at: Any, src: Any) -> Any:
    """The values that are stored are those of the tensor that they are stored to."""
    y = x * 2
    return y.scatter(1, at, y)


def is_turned(torch: Any, x: Any, at: Any, src: Any) -> Any:
    return (x * 2).t().scatter(1, at, src)


def is_an_argument(torch: Any, x: Any, at: Any, src: Any) -> Any:
    return x.scatter(1, at, src)


def is_written_in_the_end(torch: Any, x: Any, at: Any, src: Any) -> Any:
    x.scatter_(1, at, src)


def is_returned(torch: Any, x: Any, at: Any, src: Any) -> Any:
    """The result is the caller's memory: what dies is made there."""
    return (x * 2).scatter(1, at, 0.5)


def chain(torch: Any, x: Any, at: Any, src: Any) -> Any:
    y = torch.baddbmm((x * 2)[None], src[None], src[None])
    return torch.triu(y[0].scatter(0, at, src))


# Whether each library function works in place, in the order that they run.
CASES: dict[str, tuple[Function, list[bool]]] = {
    "dies": (dies, [True]),
    "lives": (lives, [False]),
    "is the source": (is_the_source, [True]),
    "reads itself": (reads_itself, [False]),
    "is turned": (is_turned, [False]),
    "is an argument": (is_an_argument, [False]),
    "is written in the end": (is_written_in_the_end, [True]),
    "is returned": (is_returned, [True]),
    "chain": (chain, [True, True, True]),
}


@pytest.mark.parametrize("name", CASES)
def test_functions_work_in_place_where_they_may(torch: Any, compiled: Any, reports: Any, name: str) -> None:
    function, inplace = CASES[name]
    x, src = torch.randn(6, 6), torch.randn(6, 6)
    at = torch.stack([torch.randperm(6) for _ in range(6)])
    there = [t.to("dipu") for t in (x, at, src)]
    before = [t.clone() for t in there]
    expected, found = function(torch, x, at, src), compiled(lambda *given: function(torch, *given))(*there)
    if expected is None:
        expected, found = x, there[0]
    else:
        assert all(torch.equal(one, other) for one, other in zip(there, before, strict=True))
    torch.testing.assert_close(found.cpu(), expected)
    (report,) = reports()
    symbols = calls_of(report)
    assert ["Inp" in symbol for symbol in symbols] == inplace, report.text()


STEPS = ("scatter", "triu", "loop", "sum")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8))
def test_any_program_gives_what_eager_mode_gives(torch: Any, compiled: Any, steps: list[tuple[str, int, int]]) -> None:
    torch.compiler.reset()
    at = torch.stack([torch.randperm(5) for _ in range(5)])

    def run(x: Any, at: Any) -> Any:
        values = [x, x * 2]
        for kind, one, other in steps:
            first, second = values[one % len(values)], values[other % len(values)]
            made = {
                "scatter": lambda a, b: a.scatter(1, at, b),
                "triu": lambda a, b: torch.triu(a),
                "loop": lambda a, b: a * 0.5 + b,
                "sum": lambda a, b: a.scatter_add(0, at, b),
            }[kind](first, second)
            values.append(made)
        return values[-1], values[-2]

    x = torch.randn(5, 5)
    for one, other in zip(compiled(run)(x.to("dipu"), at.to("dipu")), run(x, at), strict=True):
        torch.testing.assert_close(one.cpu(), other)
