"""Outputs of which only a part is judged, and polygons that may start at any corner."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from diopi_conformance.cases.plan import Function, Param
from diopi_conformance.judgement.checks import special_check

ROWS = np.array([[0.0, 0, 4, 0, 4, 2, 0, 2], [1, 1, 3, 1, 3, 5, 1, 5]])


def judged(check: str, expected: dict[str, Any], actual: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    params = tuple(Param(name=name, passing="tensor", role="out") for name in expected)
    function = Function(
        symbol="diopiAny",
        word="any",
        op="any",
        topic="any",
        form="out",
        params=params,
        check=check,
        tolerance={},
        data={},
        references=(),
    )
    dtypes = {name: "f32" if check == "corners" else "i64" for name in expected}
    prepared = SimpleNamespace(function=function, expected=expected, values={}, case=SimpleNamespace(dtypes=dtypes))
    found = special_check(function)
    assert found is not None
    assert special_check(replace(function, form="backward")) is None
    return found(prepared, actual)


def test_only_as_many_elements_are_compared_as_are_counted() -> None:
    expected = {"keep": np.array([4, 2, 0, -1, -1]), "num": np.array(3)}
    assert judged("leading", expected, {"keep": np.array([4, 2, 0, 9, 7]), "num": np.array(3)}) == (("keep",), "")
    skipped, message = judged("leading", expected, {"keep": np.array([4, 1, 0, -1, -1]), "num": np.array(3)})
    assert (skipped, message) == (("keep",), "keep[1] is 1, expected 2")


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("way", [1, -1])
def test_a_polygon_may_start_anywhere_and_run_either_way(first: int, way: int) -> None:
    turned = np.roll(ROWS.reshape(2, 4, 2)[:, ::way], first, axis=1).reshape(2, 8)
    assert judged("corners", {"polygons": ROWS}, {"polygons": turned.astype(np.float32)}) == (("polygons",), "")


@pytest.mark.parametrize(
    "wrong",
    [
        ROWS.reshape(2, 4, 2)[:, [0, 2, 1, 3]].reshape(2, 8),  # not around
        np.where(np.arange(8) == 3, ROWS + 0.01, ROWS),
        np.where(np.arange(8) == 3, np.nan, ROWS),
        np.zeros_like(ROWS),
    ],
)
def test_other_corners_are_wrong(wrong: Any) -> None:
    skipped, message = judged("corners", {"polygons": ROWS}, {"polygons": wrong})
    assert skipped == ("polygons",)
    assert message.startswith("polygons[0] has the corners [")
    assert message.endswith("expected [0.0, 0.0, 4.0, 0.0, 4.0, 2.0, 0.0, 2.0] in any order around")


def test_no_polygon_is_right() -> None:
    assert judged("corners", {"polygons": np.zeros((0, 8))}, {"polygons": np.zeros((0, 8))}) == (("polygons",), "")
