"""Judgements of results that ties may permute: another right tie passes, all that is wrong does not."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from diopi_conformance.cases.plan import Function, Param
from diopi_conformance.judgement.checks import special_check


def prepared(symbol: str, check: str, values: dict[str, Any], expected: dict[str, Any], /, **outs: str) -> Any:
    params = (Param(name="input", passing="tensor"), *(Param(name=n, passing="tensor", role="out") for n in outs))
    function = Function(
        symbol=symbol,
        word="op",
        op="op",
        topic="topic",
        form="out",
        params=params,
        check=check,
        tolerance={},
        data={},
        references=(),
    )
    dtypes = {"input": "f32", **outs}
    return SimpleNamespace(
        function=function, values=values, expected=expected, case=SimpleNamespace(dtypes=dtypes), buffers=[], slots=[]
    )


def message(case: Any, actual: dict[str, Any]) -> str:
    return special_check(case.function)(case, actual)[1]


# Pooling.

IMAGE = np.array([[[5.0, 5.0, 1.0, 2.0], [0.0, 5.0, np.nan, 2.0], [7.0, 1.0, 7.0, 3.0], [7.0, 7.0, 4.0, np.nan]]])


def pooled(**given: Any) -> Any:
    usual = {"kernel_size": [2, 2], "stride": [], "padding": [0, 0], "dilation": [1, 1], "ceil_mode": False}
    values = {**usual, "input": IMAGE, **given}
    return prepared("diopiMaxPool2dWithIndices", "exact", values, {}, out="f32", indices="i64")


MAXIMA = [[[5.0, np.nan], [7.0, np.nan]]]


@pytest.mark.parametrize(
    ("indices", "fault"),
    [
        ([[[0, 6], [8, 15]]], ""),  # the first of each
        ([[[1, 6], [12, 15]]], ""),
        ([[[5, 6], [13, 15]]], ""),
        ([[[4, 6], [8, 15]]], "'indices' leads to 0.0 at [0, 0, 0], but 'out' is 5.0"),
        ([[[0, 3], [8, 15]]], "'indices' leads to 2.0 at [0, 0, 1], but 'out' is nan"),
        ([[[0, 6], [10, 15]]], "'indices' names 10 at [0, 1, 0], which is not in its window"),
        ([[[0, 15], [8, 15]]], "'indices' names 15 at [0, 0, 1], which is not in its window"),
        ([[[0, 6], [8, 16]]], "'indices' holds 16 at [0, 1, 1], out of range"),
        ([[[-1, 6], [8, 15]]], "'indices' holds -1 at [0, 0, 0], out of range"),
    ],
)
def test_a_pooling_may_name_any_of_equal_elements_of_a_window(indices, fault):
    assert message(pooled(), {"out": np.array(MAXIMA), "indices": np.array(indices)}) == fault


@pytest.mark.parametrize(("index", "fault"), [(8, ""), (10, ""), (0, "which is not in its window")])
def test_a_window_may_skip_places_and_begin_outside(index, fault):
    """Windows of rows -1 and 2, 0 and 3, 1 and 4, and of columns 0 and 2, 1 and 3."""
    source = np.array([[[7.0, 0.0, 0.0, 0.0], [0.0] * 4, [7.0, 0.0, 7.0, 0.0], [0.0] * 4]])
    case = pooled(input=source, kernel_size=[2, 2], stride=[1, 1], padding=[1, 0], dilation=[3, 2])
    out = np.array([[[7.0, 0.0], [7.0, 0.0], [0.0, 0.0]]])
    found = message(case, {"out": out, "indices": np.array([[[index, 9], [0, 13], [4, 7]]])})
    assert fault in found and bool(fault) == bool(found)


def test_the_value_beside_a_wrong_index_is_still_compared_elsewhere():
    case = pooled()
    judged, _ = special_check(case.function)(case, {"out": np.array(MAXIMA), "indices": np.array([[[0, 6], [8, 15]]])})
    assert judged == ("indices",)


@pytest.mark.parametrize(
    ("indices", "fault"),
    [
        ([[1, 3]], ""),
        ([[2, 2]], ""),  # windows overlap: both may name the same
        ([[2, 4]], ""),
        ([[3, 3]], "'indices' names 3 at [0, 0], which is not in its window"),
        ([[2, 1]], "'indices' names 1 at [0, 1], which is not in its window"),
        ([[0, 3]], "'indices' leads to 0.0 at [0, 0], but 'out' is 4.0"),
    ],
)
def test_adaptive_windows_go_from_a_floor_to_a_ceiling(indices, fault):
    source = np.array([[0.0, 4.0, 4.0, 4.0, 4.0]])
    values = {"input": source, "output_size": [2]}
    case = prepared("diopiAdaptiveMaxPool1dWithIndices", "exact", values, {}, out="f32", indices="i64")
    assert message(case, {"out": np.array([[4.0, 4.0]]), "indices": np.array(indices)}) == fault


# Sorting and choosing.

ROW = np.array([[3.0, 9.0, 3.0, 9.0, np.nan]])


def chosen(**given: Any) -> Any:
    values = {"input": ROW, "k": 3, "dim": -1, "largest": True, "sorted": True, **given}
    expected = {"values": np.array([[np.nan, 9.0, 9.0]]), "indices": np.array([[4, 1, 3]])}
    return prepared("diopiTopk", "values_by_indices", values, expected, values="f32", indices="i64")


@pytest.mark.parametrize(
    ("indices", "fault"),
    [
        ([[4, 3, 1]], ""),
        ([[4, 1, 1]], "'indices' names one element twice"),
        ([[4, 0, 1]], "'indices' leads to 3.0 at [0, 1], but 'values' is 9.0"),
        ([[4, 3, 5]], "'indices' holds 5, out of range"),
    ],
)
def test_the_greatest_elements_may_be_named_in_either_order(indices, fault):
    assert message(chosen(), {"values": np.array([[np.nan, 9.0, 9.0]]), "indices": np.array(indices)}) == fault


def test_unsorted_elements_are_compared_in_the_order_of_the_expected_ones():
    case, actual = chosen(sorted=False), {"values": np.array([[9.0, np.nan, 9.0]]), "indices": np.array([[3, 4, 1]])}
    assert special_check(case.function)(case, actual) == (("indices",), "")
    assert np.array_equal(actual["values"], case.expected["values"], equal_nan=True)


def test_a_wrong_unsorted_value_stays_wrong():
    case, actual = chosen(sorted=False), {"values": np.array([[3.0, np.nan, 9.0]]), "indices": np.array([[0, 4, 1]])}
    assert message(case, actual) == ""
    assert not np.array_equal(actual["values"], case.expected["values"], equal_nan=True)


@pytest.mark.parametrize("name", ["pStable", "stable"])
@pytest.mark.parametrize(("wanted", "judged"), [(True, ()), (False, ("indices",)), (None, ("indices",))])
def test_only_a_stable_sort_must_keep_the_order_of_ties(name, wanted, judged):
    """What no special judgement takes is compared element by element."""
    values = {"input": ROW, "dim": -1, name: wanted}
    case = prepared("diopiSort", "values_by_indices", values, {}, values="f32", indices="i64")
    actual = {"values": np.sort(ROW), "indices": np.array([[2, 0, 3, 1, 4]])}
    assert special_check(case.function)(case, actual) == (judged, "")


# Different elements.

DIFFERENT = {"out": np.array([1.0, 4.0, 6.0]), "counts": np.array([1, 3, 2]), "indices": np.array([2, 1, 0, 1, 2, 1])}


def different(is_sorted: bool, dim: int | None = None) -> Any:
    values = {"input": DIFFERENT["out"][DIFFERENT["indices"]], "sorted": is_sorted, "dim": dim}
    return prepared("diopiUnique", "exact", values, DIFFERENT, out="f32", indices="i64", counts="i64")


def permuted() -> dict[str, Any]:
    return {"out": np.array([6.0, 1.0, 4.0]), "counts": np.array([2, 1, 3]), "indices": np.array([0, 2, 1, 2, 0, 2])}


def same(actual: dict[str, Any]) -> list[str]:
    return [name for name in DIFFERENT if np.array_equal(actual[name], DIFFERENT[name])]


def test_unsorted_different_elements_may_come_in_any_order():
    case, actual = different(False), permuted()
    assert message(case, actual) == "" and same(actual) == list(DIFFERENT)


@pytest.mark.parametrize(("name", "value"), [("out", 5.0), ("counts", 7), ("indices", 1), ("indices", 9)])
def test_what_is_wrong_stays_wrong_in_any_order(name, value):
    case, actual = different(False), permuted()
    actual[name][0] = value
    assert message(case, actual) == "" and name not in same(actual)


def test_sorted_different_elements_must_be_in_order():
    case, actual = different(True), permuted()
    assert message(case, actual) == "" and same(actual) == []


def test_unsorted_different_slices_are_ordered_by_their_numbers():
    case = different(False, dim=1)
    actual = {"out": np.array([[2.0, 1.0, 1.0], [0.0, 8.0, 7.0]]), "counts": np.array([4, 5, 6])}
    assert message(case, actual) == ""
    assert np.array_equal(actual["out"], [[1.0, 1.0, 2.0], [7.0, 8.0, 0.0]])
    assert np.array_equal(actual["counts"], [6, 5, 4])


# Regions.

PLANE = np.array([[5.0, 1.0, 2.0, 5.0], [5.0, 0.0, 2.0, 1.0], [3.0, 3.0, 0.0, 0.0]])


@pytest.mark.parametrize(
    ("places", "fault"),
    [
        ([0, 3], ""),
        ([4, 3], ""),  # the other five of the left bin
        ([3, 3], "'argmax' is 3 at [0, 0, 0, 0], which is not in its bin"),
        ([0, 0], "'argmax' is 0 at [0, 0, 0, 1], which is not in its bin"),
        ([8, 3], "'argmax' is 8 at [0, 0, 0, 0], which leads to 3.0, but 5.0 is greatest"),
        ([0, 12], "'argmax' is 12 at [0, 0, 0, 1], expected 3"),
        ([-1, 3], "'argmax' is -1 at [0, 0, 0, 0], expected 0"),
    ],
)
def test_a_bin_may_name_any_of_its_greatest_pixels(places, fault):
    """A roi of 4 by 2 pixels in two bins side by side."""
    rois = np.array([[0.0, 0.0, 0.0, 7.0, 3.0]])
    values = {"input": PLANE[None, None], "rois": rois, "pooled_height": 1, "pooled_width": 2, "spatial_scale": 0.5}
    expected = {"output": np.array([[[[5.0, 5.0]]]]), "argmax": np.array([[[[0, 3]]]])}
    case = prepared("diopiRoiPoolMmcv", "close", values, expected, output="f32", argmax="i32")
    assert message(case, {"output": expected["output"], "argmax": np.array([[[places]]])}) == fault


def test_an_empty_bin_names_no_pixel():
    rois = np.array([[0.0, 20.0, 20.0, 21.0, 21.0]])
    values = {"input": PLANE[None, None], "rois": rois, "pooled_height": 1, "pooled_width": 1, "spatial_scale": 1.0}
    expected = {"output": np.zeros((1, 1, 1, 1)), "argmax": np.full((1, 1, 1, 1), -1)}
    case = prepared("diopiRoiPoolMmcv", "close", values, expected, output="f32", argmax="i32")
    assert message(case, {"output": expected["output"], "argmax": np.full((1, 1, 1, 1), 2)}).endswith("expected -1")
    assert message(case, dict(expected)) == ""
