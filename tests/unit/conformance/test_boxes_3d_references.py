"""Boxes in space: what they share from above, the points in them, and what is pooled of those."""

import math

import pytest
import torch

from diopi_conformance.polygons import rectangle
from diopi_conformance.references import boxes, boxes_3d
from diopi_conformance.references.registry import SCRATCH
from tests.unit.conformance.calls import Given, between, numbers, tensor


def solids(count: int, seed: int = 0) -> torch.Tensor:
    low, high = tensor([3, 3, -1, 3, 3, 2, -3]), tensor([5, 5, 0.5, 7, 7, 4, 3])
    return low + (high - low) * between(0, 1, count, 7, seed=seed)


def test_seen_from_above_boxes_are_rotated_boxes() -> None:
    first, second = solids(5, 1), solids(4, 2)
    flat = [b[:, [0, 1, 3, 4, 6]] for b in (first, second)]
    shared = boxes_3d.overlap_bev(Given(boxes_a=first, boxes_b=second))["ans_overlap"]
    areas = [b[:, 2] * b[:, 3] for b in flat]
    union = areas[0][:, None] + areas[1] - shared
    found = boxes.box_iou_rotated(Given(bboxes1=flat[0], bboxes2=flat[1], mode=0, aligned=False))["ious"]
    torch.testing.assert_close((shared / union).flatten(), found)


def test_a_box_shares_its_area_with_itself_wherever_it_hangs() -> None:
    box = tensor([[1, 2, 0, 4, 3, 1, 0.7]])
    above = box + tensor([0, 0, 50, 0, 0, 2, 0])
    assert boxes_3d.overlap_bev(Given(boxes_a=box, boxes_b=above))["ans_overlap"].item() == pytest.approx(12)


def test_kept_boxes_come_first_and_are_counted() -> None:
    row = tensor(
        [[0, 0, 0, 4, 2, 1, 0], [0.5, 0, 0, 4, 2, 1, 0], [0, 9, 0, 4, 2, 1, 0], [0, 0, 0, 4, 2, 1, math.pi / 2]]
    )
    call = Given(boxes=row, nms_overlap_thresh=0.5)
    turned, plain = boxes_3d.nms(call), boxes_3d.nms_normal(call)
    assert turned["keep_num"].item() == 3  # across, the last shares only 4 of 12
    assert turned["keep"].tolist() == [0, 2, 3, -1]
    assert plain["keep_num"].item() == 2
    assert plain["keep"].tolist() == [0, 2, -1, -1]


def test_points_in_a_turned_box_by_hand() -> None:
    box = tensor([[[1, 1, 0, 4, 2, 3, math.pi / 2]]])  # 2 wide along x, 4 along y, from 0 to 3 in height
    points = tensor([[[1, 2.9, 1], [2.9, 1, 1], [1.9, -0.9, 2.9], [1, 1, -0.1], [1, 1, 3.1], [0.1, 1, 0.1]]])
    expected = [1, 0, 1, 0, 0, 1]
    assert (
        boxes_3d.points_in_boxes_all(Given(boxes=box, pts=points))["box_idx_of_points"].flatten().tolist() == expected
    )


def test_a_box_stands_where_its_corners_from_above_are() -> None:
    """What is inside agrees with the corners by which boxes overlap."""
    box = tensor([4, 5, 0, 6, 2, 2, 0.6])
    corners = rectangle(4, 5, 6, 2, 0.6)
    for share, expected in ((0.99, True), (1.01, False)):
        points = tensor([[4 + (x - 4) * share, 5 + (y - 5) * share, 1] for x, y in corners])
        assert boxes_3d.inside(points, box).tolist() == [expected] * 4


def test_the_first_of_several_boxes_is_named() -> None:
    row = torch.stack([solids(4, 1), solids(4, 2)])
    points = between(0, 8, 2, 60, 3) * tensor([1, 1, 0.4])
    call = Given(boxes=row, pts=points)
    every = boxes_3d.points_in_boxes_all(call)["box_idx_of_points"]
    first = boxes_3d.points_in_boxes_part(call)["box_idx_of_points"]
    for b in range(2):
        for p in range(60):
            inside = every[b, p].nonzero()[:, 0].tolist()
            assert first[b, p] == (inside[0] if inside else -1)
    assert set(first.flatten().tolist()) >= {-1, 0, 1}


# A box of 4 by 2 by 2 in 2 by 1 by 2 cells, about the centre (0, 0, 0) of its bottom.
CELLED = tensor([[0, 0, 0, 4, 2, 2, 0]])
POINTS = tensor(
    [[-1, 0, 0.5], [1, 0, 0.5], [-1.5, 0.5, 0.2], [5, 0, 0.5], [-0.5, 0, 0.9], [1, 0, 1.5], [-1, -0.9, 0.1]]
)
FEATURES = tensor([[1, 5], [2, 2], [3, 1], [9, 9], [7, 4], [6, -6], [8, 8]])


def pooled(method: int) -> dict[str, torch.Tensor]:
    inouts = {"pts_idx_of_voxels": torch.zeros(1, 2, 1, 2, 4).int(), "pooled_features": torch.zeros(1, 2, 1, 2, 2)}
    return boxes_3d.roiaware_pool3d(Given(rois=CELLED, pts=POINTS, pts_feature=FEATURES, **inouts, pool_method=method))


def test_cells_count_and_name_the_points_that_they_have_room_for() -> None:
    named = pooled(0)["pts_idx_of_voxels"]
    # the low left cell holds 0, 2, 4 and 6 and has room for three
    assert named[0, :, 0].tolist() == [[[3, 0, 2, 4], [0, 0, 0, 0]], [[1, 1, 0, 0], [1, 5, 0, 0]]]


def test_cells_pool_the_maximum_and_name_its_point() -> None:
    found = pooled(0)
    assert found["pooled_features"][0, :, 0].tolist() == [[[7, 5], [0, 0]], [[2, 2], [6, -6]]]
    assert found["argmax"][0, :, 0].tolist() == [[[4, 0], [-1, -1]], [[1, 1], [5, 5]]]


def test_cells_pool_the_mean() -> None:
    found = pooled(1)
    torch.testing.assert_close(
        found["pooled_features"][0, 0, 0, 0].double(), tensor([11 / 3, 10 / 3]), atol=1e-6, rtol=0
    )
    assert found["pooled_features"][0, 1, 0].tolist() == [[2, 2], [6, -6]]
    assert found["argmax"] is SCRATCH


@pytest.mark.parametrize("method", [0, 1])
def test_pooling_hands_gradients_back_to_the_points(method: int) -> None:
    """What pooling is linear in, the gradient tells: the sum of pooled features by their weights."""
    forward, weights, before = pooled(method), numbers(1, 2, 1, 2, 2), numbers(7, 2, seed=1)
    argmax = forward["argmax"] if method == 0 else torch.zeros(1, 2, 1, 2, 2).int()
    call = Given(
        grad_in=before,
        pts_idx_of_voxels=forward["pts_idx_of_voxels"],
        argmax=argmax,
        grad_out=weights,
        pool_method=method,
    )
    found = boxes_3d.roiaware_pool3d_backward(call)["grad_in"] - before
    torch.testing.assert_close(
        (found * FEATURES).sum(), (weights * forward["pooled_features"]).sum(), rtol=1e-6, atol=1e-6
    )
    assert found[3].tolist() == [0, 0]  # outside
    assert found[6].tolist() == [0, 0]  # no room
    assert call["grad_in"] is before


def test_points_of_a_box_are_gathered_and_repeated() -> None:
    xyz, feature = POINTS[None], FEATURES[None]
    row = torch.stack(
        [CELLED[0], CELLED[0] + tensor([50, 0, 0, 0, 0, 0, 0]), CELLED[0] * tensor([1, 1, 1, 0.2, 0.5, 1, 1])]
    )
    row[2, 0] = -1.0
    before = torch.full((1, 3, 8, 5), 0.5, dtype=torch.float64)
    found = boxes_3d.roipoint_pool3d(Given(pooled_features=before, xyz=xyz, boxes3d=row[None], pts_feature=feature))
    assert found["pooled_empty_flag"].tolist() == [[0, 1, 0]]
    rows = torch.cat([xyz, feature], -1)[0]
    torch.testing.assert_close(found["pooled_features"][0, 0], rows[[0, 1, 2, 4, 5, 6, 0, 1]])
    torch.testing.assert_close(found["pooled_features"][0, 1], before[0, 1])
    torch.testing.assert_close(found["pooled_features"][0, 2], rows[[0] * 8])
