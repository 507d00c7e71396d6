"""The judgements beside element by element: ties, numbers in host memory, tensors that a function allocates."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from diopi_conformance.cases.plan import Function, Param
from diopi_conformance.judgement.checks import special_check
from diopi_conformance.judgement.compare import _host, _made
from diopi_conformance.prepare import Slot

TENSORS = {"i64": ("indices",), "f32": ("values", "input", "inout", "out")}


def function(symbol: str, check: str) -> Function:
    params = (Param(name="input", passing="tensor"),)
    return Function(
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


def prepared(symbol: str, check: str, values: dict[str, Any], expected: dict[str, Any] | None = None) -> Any:
    dtypes = {name: dtype for dtype, names in TENSORS.items() for name in names}
    return SimpleNamespace(
        function=function(symbol, check),
        values=values,
        expected=expected or {},
        case=SimpleNamespace(dtypes={**dtypes, "mask": "bool"}),
    )


SOURCE = np.array([[3.0, 1.0, 3.0], [2.0, 2.0, np.nan]])


@pytest.mark.parametrize(
    ("indices", "fault"),
    [
        ([[1, 0, 2], [0, 1, 2]], ""),
        ([[1, 2, 0], [1, 0, 2]], ""),  # ties the other way round
        ([[1, 0, 0], [0, 1, 2]], "names one element twice"),
        ([[0, 1, 2], [0, 1, 2]], "leads to"),
        ([[1, 0, 3], [0, 1, 2]], "out of range"),
    ],
)
def test_sorted_values_by_their_indices(indices, fault):
    case = prepared("diopiSort", "values_by_indices", {"input": SOURCE, "dim": -1, "pStable": None})
    actual = {"values": np.sort(SOURCE, axis=-1), "indices": np.array(indices)}
    judged, message = special_check(case.function)(case, actual)
    assert judged == ("indices",)
    assert fault in message and bool(fault) == bool(message)


def test_a_stable_sort_leaves_no_choice():
    case = prepared("diopiSort", "values_by_indices", {"input": SOURCE, "dim": -1, "pStable": True})
    actual = {"values": np.sort(SOURCE, axis=-1), "indices": np.array([[1, 2, 0], [1, 0, 2]])}
    assert special_check(case.function)(case, actual) == ((), "")


@pytest.mark.parametrize(
    ("dim", "found", "fault"), [(1, [2, 2], False), (1, [1, 2], True), (None, 5, False), (None, 0, True)]
)
def test_positions_by_the_values_they_lead_to(dim, found, fault):
    expected = np.array([0, 2]) if dim is not None else np.array(5)
    case = prepared("diopiArgmax", "indices_by_values", {"input": SOURCE, "dim": dim}, {"indices": expected})
    _, message = special_check(case.function)(case, {"indices": np.array(found)})
    assert bool(message) == fault


@pytest.mark.parametrize(
    ("value", "wrong"), [(2.5, False), (2.5 + 1e-7, False), (2.5 + 1e-5, True), (2.51, True), (np.nan, True)]
)
def test_a_fraction_in_host_memory_is_as_exact_as_its_tensors(value, wrong):
    case = prepared("diopiClipGradNorm", "close", {}, {"norm": np.array(2.5)})
    case.case.dtypes = {"grads": "f32"}
    case.function = replace(case.function, params=(Param(name="norm", passing="double*", role="host"),))
    assert bool(list(_host(case, {"host": [np.float64(value).tobytes().hex()]}, None))) == wrong


@pytest.mark.parametrize(
    ("optional", "allocated", "fault"),
    [(True, False, ""), (False, False, "was not allocated"), (True, True, "nobody asked")],
)
def test_an_optional_output_is_allocated_when_it_is_asked_for(optional, allocated, fault):
    param = Param(name="counts", passing="tensor*", role="new", optional=optional)
    slot = Slot(param=param, label="counts", dtype="i64", expected=None if optional else np.arange(3))
    case = SimpleNamespace(slots=[slot])
    facts = {"dtype": 6, "sizes": [3], "strides": [1], "offset": 0} if allocated else None
    found = list(_made(SimpleNamespace(), case, {"new": [facts]}, [b""], {}))
    assert len(found) == bool(fault) and all(fault in f.message for f in found)
