"""Element types, memory views and random values."""

import numpy as np
import pytest
import torch

from diopi_conformance.values.draw import Recipe, draw, parse_recipe, source
from diopi_conformance.values.elements import decode, encode, holds
from diopi_conformance.values.fills import filled
from diopi_conformance.values.inputs import UnfitCase, as_computed
from diopi_conformance.values.views import layout, own_sizes, shared
from diopigen.vocabulary.loaded import DTYPE

VIEWS = ("contiguous", "strided", "offset", "expanded", "transposed", "overlapping")
ORDERS = ("", "nlc", "nhwc", "ndhwc")


def test_bfloat16_rounds_as_torch_does():
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2**64, size=200_000, dtype=np.uint64)
    values = np.concatenate([bits.view(np.float64), rng.standard_normal(200_000), [0.0, -0.0, np.inf, -np.inf]])
    values = values[~np.isnan(values)]
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    expected = torch.from_numpy(single).to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    assert np.array_equal(encode(single.astype(np.float64), "bf16"), expected)


def test_bfloat16_rounds_once():
    halfway = 1 + 2.0**-8  # between two neighbours: the even one is 1
    above = halfway + 2.0**-40  # float32 would round this to the middle first
    assert decode(encode(np.array([halfway, above]), "bf16"), "bf16").tolist() == [1.0, 1 + 2.0**-7]


@pytest.mark.parametrize(
    ("name", "values", "fits"),
    [
        ("f32", [0.1, np.nan, np.inf], True),  # fractions are rounded
        ("f32", [1e300], False),  # but stay finite
        ("f16", [2048], True),
        ("f16", [2049], False),  # whole numbers stay the same
        ("i32", [2**31 - 1, -(2**31)], True),
        ("i32", [2**31], False),
        ("i32", [0.5], False),
        ("i32", [3.0], True),
        ("bool", [0.5, 7.0], True),
        ("c64", [1j, 0.1], True),
        ("c64", [1e300j], False),
    ],
)
def test_what_a_type_holds(name, values, fits):
    assert holds(name, np.array(values)) == fits


def test_values_pass_through_the_type_that_is_computed_in():
    tenth = np.array([0.1])
    assert as_computed("input", tenth, "f64", "f64") is tenth
    assert as_computed("input", tenth, "f64", "f32").tolist() == [float(np.float32(0.1))]
    assert as_computed("input", tenth, "f16", "f32").tolist() == [float(np.float16(0.1))]
    listed = as_computed("tensors", [tenth, None], "f64", "bf16")
    assert (listed[0].tolist(), listed[1]) == ([0.10009765625], None)
    with pytest.raises(UnfitCase, match=r"^'tensors\[1\]' holds values that i32 cannot$"):
        as_computed("tensors", [np.array([1]), np.array([2**40])], "i64", "i32")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("sizes", [(), (0,), (5,), (3, 4), (2, 1, 3), (2, 3, 4, 5), (2, 0, 3), (2, 3, 2, 1, 4)])
def test_positions_lie_in_the_storage_and_writable_ones_do_not_overlap(view, order, sizes):
    for writable in (True, False):
        place = layout(view, sizes, writable, order)
        positions = place.positions()
        assert positions.shape == sizes
        assert positions.size == 0 or 0 <= positions.min() <= positions.max() < place.elements
        if writable:
            assert np.unique(positions).size == positions.size


def test_each_view_differs_from_a_plain_tensor():
    assert all(not layout(view, (2, 3, 4, 5), False).plain for view in VIEWS[1:])


def test_values_follow_from_the_name_alone():
    first = draw(None, (4, 5), "f32", source("add/f32/0", "input", 0))
    assert np.array_equal(first, draw(None, (4, 5), "f32", source("add/f32/0", "input", 0)))
    assert not np.array_equal(first, draw(None, (4, 5), "f32", source("add/f32/0", "other", 0)))


def test_recipes_read_the_row():
    recipe = parse_recipe("index(input, dim)", {"dim": -1}, {"input": (7, 3)})
    assert recipe == Recipe("index", ((7, 3), -1))
    drawn = draw(recipe, (200,), "i64", source("a", "b", 0))
    assert set(drawn.tolist()) == {0, 1, 2}
    with pytest.raises(ValueError, match="'nowhere' has no value"):
        parse_recipe("index(nowhere, 0)", {}, {})


@pytest.mark.parametrize(
    ("text", "dtype", "holds"),
    [
        ("uniform(0.5, 2)", "f32", lambda v: (v >= 0.5).all() and (v < 2).all()),
        ("integers(-3, 3)", "i32", lambda v: set(v.tolist()) == {-3, -2, -1, 0, 1, 2}),
        ("mask(0.25)", "bool", lambda v: 0.1 < v.mean() < 0.4),
        ("distinct()", "i16", lambda v: np.unique(v).size == v.size),
        ("distinct()", "f16", lambda v: np.unique(v).size == v.size),
        ("zeros()", "f64", lambda v: not v.any()),
        ("values(1, -2, 4)", "f32", lambda v: set(v.tolist()) == {1.0, -2.0, 4.0}),
        ("listed(0, 3, 8)", "i64", lambda v: v[:5].tolist() == [0, 3, 8, 0, 3]),
        ("probabilities(0)", "f32", lambda v: np.isclose(v.sum(), 1)),
    ],
)
def test_recipes_draw_what_they_say(text, dtype, holds):
    assert holds(draw(parse_recipe(text, {}, {}), (400,), dtype, source("case", text, 0)))


def test_symmetric_matrices_and_boxes_are_what_they_say():
    matrices = draw(parse_recipe("positive_definite()", {}, {}), (3, 5, 5), "f64", source("case", "mat", 0))
    assert np.array_equal(matrices, np.swapaxes(matrices, -1, -2)) and np.linalg.eigvalsh(matrices).min() > 0.5
    boxes = draw(parse_recipe("boxes()", {}, {}), (40, 4), "f32", source("case", "boxes", 0))
    assert boxes.shape == (40, 4) and (boxes[:, 2:] > boxes[:, :2]).all()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("view", ["expanded", "overlapping"])
@pytest.mark.parametrize("sizes", [(3, 4), (2, 5, 3), (2, 3, 4, 5)])
def test_values_that_share_elements_lie_in_their_storage(view, order, sizes):
    rng = np.random.default_rng(3)
    own = own_sizes(view, sizes, order)
    values = shared(view, rng.standard_normal(own), sizes, order)
    place = layout(view, sizes, False, order)
    assert values.shape == sizes and place.elements == np.prod(own) < values.size
    stored = np.zeros(place.elements)
    stored[place.positions()] = values
    assert np.array_equal(stored[place.positions()], values)
    assert np.unique(values).size == place.elements


def test_overlapping_elements_are_windows_that_slide_by_one():
    assert shared("overlapping", np.arange(6.0)[None], (3, 4)).tolist() == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]
    assert layout("overlapping", (3, 4), False).strides == (1, 1)
    assert layout("overlapping", (3, 4), True).plain


@pytest.mark.parametrize(
    ("dtype", "tiny", "most"), [("f16", 2.0**-14, 65504.0), ("bf16", 2.0**-126, 3.3895313892515355e38)]
)
def test_the_ends_of_floats(dtype, tiny, most):
    info = torch.finfo({"f16": torch.float16, "bf16": torch.bfloat16}[dtype])
    assert (2.0 ** DTYPE[dtype].least_exponent, DTYPE[dtype].largest) == (tiny, most) == (info.tiny, info.max)


@pytest.mark.parametrize("dtype", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_extremes_of_integers_are_both_ends(dtype):
    rng = np.random.default_rng(5)
    found = filled("extremes", rng.integers(0, 11, size=100), dtype, rng)
    info = np.iinfo(found.dtype)
    assert (found.min(), found.max()) == (info.min, info.max)
    assert ((found > 0) & (found < 11)).any()  # and usual ones among them


def test_fills_of_floats():
    rng = np.random.default_rng(6)
    usual = rng.standard_normal(200)
    special = filled("special", usual, "f32", rng)
    assert np.isnan(special).any() and {np.inf, -np.inf, 0.0} <= set(special[~np.isnan(special)])
    denormal = filled("denormal", usual, "f32", rng)
    small = np.abs(denormal) < 2.0 ** DTYPE["f32"].least_exponent
    assert small.any() and (decode(encode(denormal[small], "f32"), "f32") != 0).any()
    assert np.array_equal(denormal[~small], usual[~small]) and not small.all()
    assert np.array_equal(filled("large", usual, "f16", rng), usual * 100)
    assert {-DTYPE["bf16"].largest, DTYPE["bf16"].largest} <= set(filled("extremes", usual, "bf16", rng))
    assert filled("special", np.array([True]), "bool", rng).tolist() == [True]
