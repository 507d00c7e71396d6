"""Overlaps of boxes and polygons, and what is kept of them: by hand, by counting points, and after a turn of all."""

import math

import pytest
import torch

from diopi_conformance.polygons import (
    holds,
    hull,
    intersection,
    overlap,
    rectangle,
    shared_area,
    signed_area,
)
from diopi_conformance.references import boxes, hulls
from tests.unit.conformance.calls import Given, between, tensor

SQUARE = [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]
DIAMOND = [(2.0, 0.0), (4.0, 2.0), (2.0, 4.0), (0.0, 2.0)]


def rotated(count: int, seed: int) -> torch.Tensor:
    """Boxes about one spot, so that most of them meet."""
    low, high = tensor([3, 3, 2, 2, -3]), tensor([6, 6, 6, 6, 3])
    return low + (high - low) * between(0, 1, count, 5, seed=seed)


def test_a_polygon_has_the_area_of_its_triangles() -> None:
    assert signed_area(SQUARE) == 4
    assert signed_area(SQUARE[::-1]) == -4
    assert signed_area([(0.0, 0.0), (3.0, 0.0), (0.0, 2.0)]) == 3
    assert signed_area([]) == 0


def test_the_hull_leaves_out_what_is_inside_and_on_its_sides() -> None:
    points = [*SQUARE, (1.0, 1.0), (1.0, 0.0), (2.0, 0.5)]
    assert sorted(hull(points)) == sorted(SQUARE)
    assert signed_area(hull(points)) > 0


def test_polygons_share_what_is_in_both() -> None:
    # the diamond cuts the square along x + y = 2
    assert shared_area(SQUARE, DIAMOND) == pytest.approx(2)
    assert overlap(SQUARE, DIAMOND) == pytest.approx(2 / (4 + 8 - 2))
    assert overlap(SQUARE, DIAMOND, of_first=True) == pytest.approx(0.5)
    assert shared_area(SQUARE, [(x + 5, y) for x, y in SQUARE]) == 0
    assert intersection(SQUARE, [(x + 5, y) for x, y in SQUARE]) == []
    assert shared_area(SQUARE, [(0.5, 0.5), (1.0, 0.5), (1.0, 1.0), (0.5, 1.0)]) == pytest.approx(0.25)


@pytest.mark.parametrize("seed", range(5))
def test_the_shared_area_is_that_of_the_points_in_both(seed: int) -> None:
    first, second = (rectangle(*row) for row in rotated(2, seed).tolist())
    steps = [k / 40 for k in range(-80, 480)]
    count = sum(holds(first, (x, y)) and holds(second, (x, y)) for x in steps for y in steps)
    assert shared_area(first, second) == pytest.approx(count / 1600, abs=0.2)


def test_a_box_turns_from_the_x_axis_to_the_y_axis() -> None:
    corners = rectangle(1, 2, 4, 2, math.pi / 2)
    assert sorted((round(x, 9), round(y, 9)) for x, y in corners) == [(0, 0), (0, 4), (2, 0), (2, 4)]
    x, y = rectangle(0, 0, 2, 0, math.pi / 6)[1]  # the middle of the right side
    assert (x, y) == (pytest.approx(math.cos(math.pi / 6)), pytest.approx(0.5))


@pytest.mark.parametrize(("mode", "offset", "expected"), [(0, 0, 1 / 7), (1, 0, 1 / 4), (0, 1, 4 / 14), (1, 1, 4 / 9)])
def test_overlaps_of_boxes_by_hand(mode: int, offset: int, expected: float) -> None:
    call = Given(bboxes1=tensor([[0, 0, 2, 2]]), bboxes2=tensor([[1, 1, 3, 3]]), mode=mode, offset=offset)
    for aligned in (True, False):
        assert boxes.bbox_overlaps(call.but(aligned=aligned))["ious"].flatten().tolist() == pytest.approx([expected])


def test_boxes_that_do_not_meet_share_nothing_in_either_direction() -> None:
    call = Given(bboxes1=tensor([[0, 0, 1, 1]]), bboxes2=tensor([[4, 4, 6, 6], [4, 0, 6, 1]]), mode=0, offset=0)
    assert boxes.bbox_overlaps(call.but(aligned=False))["ious"].tolist() == [[0, 0]]


@pytest.mark.parametrize("mode", [0, 1])
def test_rotated_boxes_without_an_angle_are_boxes(mode: int) -> None:
    first, second = (rotated(6, seed) * tensor([1, 1, 1, 1, 0]) for seed in (1, 2))
    upright = [torch.cat([b[:, :2] - b[:, 2:4] / 2, b[:, :2] + b[:, 2:4] / 2], 1) for b in (first, second)]
    for aligned in (True, False):
        call = Given(mode=mode, aligned=aligned, offset=0)
        expected = boxes.bbox_overlaps(call.but(bboxes1=upright[0], bboxes2=upright[1]))["ious"].flatten()
        found = boxes.box_iou_rotated(call.but(bboxes1=first, bboxes2=second))["ious"]
        torch.testing.assert_close(found, expected)
        assert (found > 0).any()


def test_the_overlap_is_symmetric_one_with_itself_and_the_same_after_a_turn_of_both() -> None:
    first, second = rotated(6, 1), rotated(6, 2)
    call = Given(bboxes1=first, bboxes2=second, mode=0, aligned=False)
    found = boxes.box_iou_rotated(call)["ious"].reshape(6, 6)
    torch.testing.assert_close(
        boxes.box_iou_rotated(call.but(bboxes1=second, bboxes2=first))["ious"], found.T.flatten()
    )
    own = boxes.box_iou_rotated(call.but(bboxes2=first, aligned=True))["ious"]
    torch.testing.assert_close(own, torch.ones_like(own))
    turned = [torch.stack([-b[:, 1], b[:, 0], b[:, 2], b[:, 3], b[:, 4] + math.pi / 2], 1) for b in (first, second)]
    torch.testing.assert_close(
        boxes.box_iou_rotated(call.but(bboxes1=turned[0], bboxes2=turned[1]))["ious"], found.flatten()
    )


def test_quadrilaterals_that_are_rotated_boxes_overlap_like_them() -> None:
    first, second = rotated(4, 1), rotated(5, 2)
    call = Given(bboxes1=first, bboxes2=second, mode=0, aligned=False)
    corners = [tensor([[n for p in rectangle(*row) for n in p] for row in b.tolist()]) for b in (first, second)]
    found = boxes.box_iou_quadri(call.but(bboxes1=corners[0], bboxes2=corners[1]))["ious"]
    torch.testing.assert_close(found, boxes.box_iou_rotated(call)["ious"])


def test_of_boxes_that_overlap_too_much_the_surest_is_kept() -> None:
    dets = tensor([[0, 0, 10, 10], [20, 0, 30, 10], [1, 0, 11, 10], [0, 0, 10, 9]])
    call = Given(dets=dets, scores=tensor([0.5, 0.3, 0.9, 0.7]), offset=0)
    assert boxes.nms(call.but(iou_threshold=0.5))["out"].tolist() == [2, 1]  # 2 takes 0 and 3 away
    assert boxes.nms(call.but(iou_threshold=0.82))["out"].tolist() == [2, 3, 1]  # 2 and 0 share 9 of 11; 3 takes 0 away
    assert boxes.nms(call.but(iou_threshold=0.95))["out"].tolist() == [2, 3, 0, 1]


def test_what_was_taken_away_takes_nothing_away() -> None:
    dets = tensor([[0, 0, 10, 1], [5, 0, 15, 1], [10, 0, 20, 1]])
    call = Given(dets=dets, scores=tensor([0.9, 0.8, 0.7]), offset=0, iou_threshold=0.3)
    assert boxes.nms(call)["out"].tolist() == [0, 2]
    # with a pixel more on each side the ends meet: 1 of 21, which is not enough
    assert boxes.nms(call.but(offset=1))["out"].tolist() == [0, 2]


def test_rotated_boxes_of_other_labels_do_not_compete() -> None:
    dets = tensor([[0, 0, 4, 2, 0], [0, 0, 4, 2, 0.1], [0, 0, 2, 4, math.pi / 2]])
    order = torch.tensor([2, 0, 1])
    call = Given(dets=dets, scores=tensor([0.5, 0.2, 0.9]), order=order, dets_sorted=dets[order], iou_threshold=0.5)
    assert boxes.nms_rotated(call.but(multi_label=False))["out"].tolist() == [2]
    labelled = call.but(multi_label=True, labels=torch.tensor([1, 0, 0]))
    assert boxes.nms_rotated(labelled)["out"].tolist() == [2, 0]


def ring(points: list[tuple[float, float]], valid: list[int]) -> list[int]:
    vertices = torch.zeros(1, 1, 24, 2, dtype=torch.float64)
    mask = torch.zeros(1, 1, 24, dtype=torch.bool)
    for k, point in zip(valid, points, strict=True):
        vertices[0, 0, k], mask[0, 0, k] = tensor(point), True
    found = boxes.sort_vertices(Given(vertices=vertices, mask=mask, num_valid=mask.sum(-1)))["out"]
    assert found.shape == (1, 1, 9)
    return found.flatten().tolist()


def test_corners_run_around_from_the_x_axis() -> None:
    points = [(-1.0, 1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, -1.0), (0.1, 2.0)]
    assert ring(points, [3, 8, 20, 5, 9]) == [20, 9, 3, 5, 8, 20, 10, 10, 10]


def test_less_than_three_corners_are_none() -> None:
    assert ring([(1.0, 1.0), (-1.0, 2.0)], [8, 9]) == [10] * 9


def test_the_corners_of_equal_boxes_count_once() -> None:
    corners = [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)]
    assert ring(corners * 2, list(range(8))) == [0, 1, 2, 3, 0, 8, 8, 8, 8]


def test_points_in_polygons_are_those_left_of_all_sides() -> None:
    polygons = tensor([[0, 0, 4, 1, 5, 5, 1, 4], [1, 4, 5, 5, 4, 1, 0, 0]])  # the second runs the other way
    points = between(-1, 6, 200, 2)
    a = polygons[0].reshape(4, 2)
    side = a.roll(-1, 0) - a
    ways = points[:, None] - a
    expected = ((side[:, 0] * ways[..., 1] - side[:, 1] * ways[..., 0]) > 0).all(1).double()
    found = boxes.points_in_polygons(Given(points=points, polygons=polygons))["output"]
    torch.testing.assert_close(found, expected[:, None].expand(-1, 2))
    assert 20 < expected.sum() < 180


SETS = [
    [1, 1, 2, 2, 1, 2, 2, 1, 1, 3, 3, 1, 2, 3, 3, 2, 1.5, 1.5],
    [1.5, 1.5, 2.5, 2.5, 1.5, 2.5, 2.5, 1.5, 1.5, 3.5, 3.5, 1.5, 2.5, 3.5, 3.5, 2.5, 2, 2],
]
SQUARES = [[1, 1, 1, 2, 2, 2, 2, 1], [1, 1, 1, 3, 3, 3, 3, 1]]


def test_hulls_overlap_squares_by_hand() -> None:
    """The hulls are squares of side 2 without a corner, 3.5 in area."""
    found = hulls.convex_iou(Given(pointsets=tensor(SETS), polygons=tensor(SQUARES)))["ious"]
    torch.testing.assert_close(found, tensor([[1 / 3.5, 3.5 / 4], [0.25 / 4.25, 2.25 / 5.25]]))


def test_the_generalized_overlap_counts_what_the_common_hull_adds() -> None:
    found = hulls.convex_giou(Given(pointsets=tensor(SETS), polygons=tensor(SQUARES)))["output"]
    # the second pair lies in a square of side 2.5 without two corners of 0.125 and one of 0.5
    around = 6.25 - 2 * 0.125 - 0.5
    assert found[0, 18] == pytest.approx(1 / 3.5)
    assert found[1, 18] == pytest.approx(2.25 / 5.25 - (around - 5.25) / around)


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_the_change_of_the_generalized_overlap(seed: int) -> None:
    points, polygon = between(0, 6, 1, 18, seed=seed), tensor([[2, 1, 7, 2, 8, 7, 1, 6]])
    call = Given(pointsets=points, polygons=polygon)
    found = hulls.convex_giou(call)["output"][0]
    step = 1e-6
    for k in range(18):
        moved = [points.clone(), points.clone()]
        moved[0][0, k] += step
        moved[1][0, k] -= step
        ends = [hulls.convex_giou(call.but(pointsets=p))["output"][0, 18] for p in moved]
        assert float((ends[0] - ends[1]) / (2 * step)) == pytest.approx(float(found[k]), abs=1e-7)
    assert (found[:18] != 0).sum() >= 6


def test_the_smallest_rectangle_around_a_turned_one_is_itself() -> None:
    corners = rectangle(3, 4, 5, 2, 0.4)
    inner = [(3.0, 4.0), (3.1, 4.2), (2.8, 4.1), (3.3, 3.9), (2.9, 3.95)]
    found = hulls.min_area_polygons(Given(pointsets=tensor([[n for p in (*inner, *corners) for n in p]])))["polygons"]
    torch.testing.assert_close(tensor(sorted(found.reshape(4, 2).tolist())), tensor(sorted(corners)))


@pytest.mark.parametrize("seed", range(5))
def test_no_turned_rectangle_around_the_points_is_smaller(seed: int) -> None:
    points = between(0, 10, 1, 18, seed=seed)
    found = hulls.min_area_polygons(Given(pointsets=points))["polygons"][0].reshape(4, 2)
    area = abs(signed_area([tuple(p) for p in found.tolist()]))
    cloud = points.reshape(9, 2)
    for k in range(720):
        angle = torch.tensor(k * math.pi / 1440, dtype=torch.float64)
        turn = torch.stack([torch.stack([angle.cos(), angle.sin()]), torch.stack([-angle.sin(), angle.cos()])])
        spread = cloud @ turn.T
        assert area <= (spread.amax(0) - spread.amin(0)).prod() + 1e-9
    assert all(holds_or_touches(found, point) for point in cloud)


def holds_or_touches(corners: torch.Tensor, point: torch.Tensor) -> bool:
    sides, ways = corners.roll(-1, 0) - corners, point - corners
    return bool((sides[:, 0] * ways[:, 1] - sides[:, 1] * ways[:, 0] > -1e-9).all())
