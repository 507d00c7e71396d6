"""Inputs that must fit each other: they do, whatever was drawn."""

from typing import Any

import numpy as np
import pytest
import torch

from diopi_conformance.cases.plan import Case
from diopi_conformance.polygons import (
    hull,
    overlap,
    points_of,
    rectangle,
    rectangle_along,
    sides,
    signed_area,
)
from diopi_conformance.references import boxes_3d, region_pooling
from diopi_conformance.values.draw import Recipe, draw, parse_recipe, source
from diopi_conformance.values.inputs import drawn
from diopi_conformance.values.related import boxes, points, regions, samples
from tests.unit.conformance.calls import Given, between, numbers, tensor


@pytest.mark.parametrize("labelled", [True, False])
def test_sorted_boxes_are_sorted_labelled_and_clear_cut(labelled: bool) -> None:
    low, high = tensor([3, 3, 2, 2, -3]), tensor([5, 5, 6, 6, 3])
    dets = (low + (high - low) * between(0, 1, 12, 5)).numpy()
    labels = np.arange(12) % 3 if labelled else None
    if labelled:
        dets = np.concatenate([dets, np.zeros((12, 1))], 1)
    values = {"dets": dets, "scores": np.ones(12), "labels": labels, "iou_threshold": 0.5}
    found = boxes.sorted_boxes(values)
    scores, order = found["scores"], found["order"]
    assert len(set(scores)) == 12
    assert (np.diff(scores[order]) < 0).all()
    assert np.array_equal(found["dets_sorted"], found["dets"][order])
    if labels is not None:
        assert np.array_equal(found["dets"][:, 5], labels)
    corners = [rectangle(*row[:5]) for row in found["dets"]]
    shares = [overlap(a, b) for i, a in enumerate(corners) for b in corners[:i]]
    assert not any(abs(share - 0.5) < 0.02 for share in shares)
    assert any(share > 0.5 for share in shares)


def test_at_most_eight_candidates_are_corners() -> None:
    drawn_mask = between(0, 1, 2, 3, 24).numpy() < 0.8
    found = boxes.candidates({"vertices": numbers(2, 3, 24, 2).numpy(), "mask": drawn_mask})
    assert np.array_equal(found["num_valid"], found["mask"].sum(-1))
    assert found["num_valid"].max() == 8
    assert found["num_valid"][0, 0] == 2
    assert np.array_equal(found["vertices"][-1, -1, 4:8], found["vertices"][-1, -1, :4])


def test_points_near_a_face_are_moved_out_of_all_boxes() -> None:
    box = tensor([[[1, 1, 0, 4, 2, 3, 0.0]]])
    near = [[2.99, 1, 1], [1, 1.98, 1], [1, 1, 0.01], [1, 1, 3.02], [3.01, 1.5, 1]]
    clear = [[2.9, 1, 1], [1, 1, 1], [3.1, 1, 1], [9, 1.99, 1]]
    found = points.clear_points({"pts": np.array([near + clear]), "boxes": box.numpy()})["pts"]
    assert np.array_equal(found[0, len(near) :], np.array(clear))
    assert not boxes_3d.inside(torch.from_numpy(found[0, : len(near)]), box[0, 0]).any()
    assert (found[0, : len(near)] > 20).all()


def test_what_pooling_leaves_for_the_gradient_could_have_been_left() -> None:
    drawn_ints = {
        name: (100 * numbers(3, 2, 1, 2, n, seed=n)).int().numpy() for name, n in (("named", 5), ("argmax", 2))
    }
    values = {"pts_idx_of_voxels": drawn_ints["named"], "argmax": drawn_ints["argmax"], "grad_in": np.zeros((9, 2))}
    found = points.pooled_points(values)
    named = found["pts_idx_of_voxels"].reshape(-1, 5)
    for row, argmax in zip(named, found["argmax"].reshape(-1, 2), strict=True):
        inside = row[1 : 1 + row[0]].tolist()
        assert len(set(inside)) == row[0]
        assert all(0 <= index < 9 for index in inside)
        assert all(index in inside for index in argmax) if inside else (argmax == -1).all()
    assert len(set(named[:, 0])) > 2


def test_the_pooled_mean_without_torch_is_that_with_it() -> None:
    call: Any = Given(
        input=numbers(2, 3, 9, 8),
        rois=tensor([[0, 2, 3, 12, 9], [1, -5, 1, 9, 13], [1, 4, 6, 4, 9]]),
        pooled_height=3,
        pooled_width=2,
        spatial_scale=0.5,
    )
    arrays = {name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in call.items()}
    expected = region_pooling.prroi_pool(call)["output"].numpy()
    np.testing.assert_allclose(regions.pooled(arrays)["output"], expected, atol=1e-12)


def test_samples_keep_off_pixels_and_ends() -> None:
    offsets = np.array([0.0, 1.01, -0.99, 0.5, -1.3])
    found = samples.between_pixels({"offset": offsets})["offset"]
    np.testing.assert_allclose(found, [0.06, 1.07, -0.93, 0.5, -1.3])
    places = np.array([[[[[[0.5, 0.25]]], [[[0.3, 0.5]]]]]]).reshape(1, 1, 1, 2, 1, 2)
    shapes = {"sampling_loc": places, "spatial_shapes": np.array([[6, 5], [3, 4]])}
    moved = samples.between_keys(shapes)["sampling_loc"].reshape(2, 2)
    # on the first level x is on pixel 2 of 5, y on pixel 1 of 6; on the second x is at 0.7 of 4 and y on pixel 1 of 3
    np.testing.assert_allclose(moved, [[0.5 + 0.06 / 5, 0.25 + 0.06 / 6], [0.3, 0.5 + 0.06 / 3]])
    ends = {"boxes": np.array([[[-1.0, 8.0, 9.0, 9.01]]]), "input": np.zeros((1, 4, 8, 9))}
    found = samples.clear_of_the_end(ends)["boxes"]
    np.testing.assert_allclose(found, [[[-0.94, 8.06, 9.06, 9.01]]])


def test_there_is_one_smallest_rectangle() -> None:
    """Around a triangle there are three of its double area."""
    triangle = [0.0, 0, 8, 1, 2, 7] + [3.0, 3] * 6
    clear = [0.0, 0, 10, 1, 9, 3, 1, 1.5, 4, 2, 4, 1, 4, 1, 4, 1, 4, 1]
    found = boxes.in_one_rectangle({"pointsets": np.array([triangle, clear])})["pointsets"]
    assert found[1].tolist() == clear
    corners = hull(points_of(found[0]))
    areas = [signed_area(rectangle_along(a, b, corners)) for a, b in sides(corners)]
    assert len(corners) >= 4
    assert max(areas) == pytest.approx(min(areas))  # each side of the hull is one of this rectangle
    assert min(areas) == pytest.approx(8 * 7 - 1 * 2)


def test_columns_have_ways_of_their_own() -> None:
    recipe = parse_recipe("columns(integers(3, 4), uniform(-1, 0))", {}, {})
    found = draw(recipe, (50, 5), "f32", source("a case", "input", 0))
    assert (found[:, [0, 2, 4]] == 3).all()
    assert ((found[:, [1, 3]] >= -1) & (found[:, [1, 3]] < 0)).all()
    assert len(np.unique(found[:, [1, 3]])) == 100
    with pytest.raises(ValueError, match="not a way to draw values by 'columns' of 2 arguments"):
        draw(Recipe("columns", (1, 2)), (3, 2), "f32", source("a case", "input", 0))


def test_an_expanded_tensor_keeps_its_columns_apart() -> None:
    case = Case(id="roi/f32/expanded/0", function="diopiRoi", dtypes={}, values={}, view="expanded")
    recipe = parse_recipe("columns(integers(3, 4), integers(7, 8))", {}, {})
    assert drawn(case, "rois", (1, 2), "f32", recipe, False).tolist() == [[3, 7]]
    repeated = drawn(case, "rois", (3, 2), "f32", recipe, False)
    assert repeated.tolist() == [[3, 7]] * 3
