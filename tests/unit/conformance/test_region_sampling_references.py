"""Pooling of regions: planes whose mean is known, finite differences, and what a shift or a turn must not change."""

import math

import pytest
import torch
import torch.nn.functional as F

from diopi_conformance.references import region_sampling
from diopi_conformance.references.interpolation import clamped, padded
from tests.unit.conformance.calls import Backward, Given, between, change, numbers, ramp, tensor

ROIS = tensor([[0, 2, 3, 12, 9], [1, 5, 1, 9, 13], [1, 4.5, 4, 8, 14.5]])
TURNED = tensor([[0, 7, 8, 6, 4, 0.5], [1, 8, 7, 5, 5, -2.1], [1, 6, 6.5, 4, 7, 3.0]])
UPRIGHT = Given(
    rois=ROIS, aligned_height=3, aligned_width=2, sampling_ratio=2, pool_mode=1, spatial_scale=0.5, aligned=True
)
ROTATED = Given(
    rois=TURNED, aligned_height=3, aligned_width=2, sampling_ratio=2, spatial_scale=0.5, aligned=False, clockwise=False
)
EQUIVARIANT = Given(
    rois=TURNED, pooled_height=2, pooled_width=2, num_samples=2, num_orientations=4, spatial_scale=0.5, clockwise=False
)


def test_samples_are_those_of_torch() -> None:
    planes, y, x = numbers(3, 6, 5), between(-2, 7, 4, 9), between(-2, 6, 4, 9, seed=1)
    grid = torch.stack([(2 * x + 1) / 5 - 1, (2 * y + 1) / 6 - 1], -1)[None]
    found = F.grid_sample(planes[None], grid, padding_mode="zeros", align_corners=False)[0]
    torch.testing.assert_close(padded(planes, y, x), found)
    border = F.grid_sample(planes[None], grid, padding_mode="border", align_corners=False)[0]
    near = (y >= -1) & (y <= 6) & (x >= -1) & (x <= 5)
    torch.testing.assert_close(clamped(planes, y, x), border * near)
    assert 0 < near.sum() < near.numel()


def test_the_mean_of_an_inclined_plane_is_its_value_in_the_middle() -> None:
    """The middle of bin k of n between a and b is a + (k + 1/2) (b - a) / n, less half a pixel where aligned."""
    image = ramp(12, 11, 1.0, 10.0)
    call = UPRIGHT.but(input=image, rois=tensor([[0, 4, 6, 10, 18]]))  # x from 2 to 5, y from 3 to 9
    for aligned, shift in ((True, 0.5), (False, 0.0)):
        rows = tensor([4.0, 6.0, 8.0]) - shift
        columns = tensor([2.75, 4.25]) - shift
        found = region_sampling.roi_align(call.but(aligned=aligned))["output"][0, 0]
        torch.testing.assert_close(found, rows[:, None] + 10 * columns)
        maxima = region_sampling.roi_align(call.but(aligned=aligned, pool_mode=0))
        torch.testing.assert_close(maxima["argmax_y"][0, 0], (rows + 0.5)[:, None].expand(3, 2))
        torch.testing.assert_close(maxima["argmax_x"][0, 0], (columns + 0.375).expand(3, 2))
        torch.testing.assert_close(maxima["output"][0, 0], (rows + 0.5)[:, None] + 10 * (columns + 0.375))


def test_as_many_samples_as_pixels_are_taken_if_nothing_else_is_said() -> None:
    image = numbers(1, 2, 12, 11)
    call = UPRIGHT.but(input=image, rois=tensor([[0, 2, 2, 14, 20]]))  # bins of 3 by 3 pixels
    found = region_sampling.roi_align(call.but(sampling_ratio=0))["output"]
    torch.testing.assert_close(found, region_sampling.roi_align(call.but(sampling_ratio=3))["output"])


def test_a_small_box_is_one_pixel_unless_aligned() -> None:
    image = ramp(12, 11, 1.0, 10.0)
    call = UPRIGHT.but(input=image, rois=tensor([[0, 8, 8, 8.2, 8.2]]), aligned_height=1, aligned_width=1)
    assert region_sampling.roi_align(call.but(aligned=False))["output"].item() == pytest.approx(4.5 + 45)
    assert region_sampling.roi_align(call)["output"].item() == pytest.approx(3.55 + 35.5)


@pytest.mark.parametrize("mode", [0, 1])
def test_a_shift_of_image_and_box_changes_nothing(mode: int) -> None:
    image = torch.zeros(2, 3, 16, 16).double()
    image[:, :, 4:12, 4:12] = numbers(2, 3, 8, 8)
    rois = tensor([[0, 8, 9, 20, 22], [1, 10, 8, 17, 21]])
    call = UPRIGHT.but(input=image, rois=rois, pool_mode=mode)
    moved = call.but(input=image.roll((2, 3), (2, 3)), rois=rois + tensor([0, 6, 4, 6, 4]))
    before, after = (region_sampling.roi_align(c) for c in (call, moved))
    torch.testing.assert_close(after["output"], before["output"])
    if mode == 0:
        torch.testing.assert_close(after["argmax_y"], before["argmax_y"] + 2)
        torch.testing.assert_close(after["argmax_x"], before["argmax_x"] + 3)


def test_a_box_far_outside_pools_nothing() -> None:
    call = UPRIGHT.but(input=numbers(2, 3, 9, 8) + 10, rois=tensor([[1, 60, 60, 70, 70]]))
    assert not region_sampling.roi_align(call)["output"].any()


@pytest.mark.parametrize("rows", [0, 3])
def test_without_an_angle_a_rotated_box_is_upright(rows: int) -> None:
    image = numbers(2, 3, 9, 8)
    upright = UPRIGHT.but(input=image, rois=ROIS[:rows], aligned=False)
    x1, y1, x2, y2 = ROIS[:rows, 1:].unbind(1)
    boxes = torch.stack([ROIS[:rows, 0], (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, torch.zeros(rows)], 1)
    found = region_sampling.roi_align_rotated(ROTATED.but(input=image, rois=boxes))["output"]
    assert found.shape == (rows, 3, 3, 2)
    torch.testing.assert_close(found, region_sampling.roi_align(upright)["output"])
    for aligned in (True, False):
        aligned_found = region_sampling.roi_align_rotated(ROTATED.but(input=image, rois=boxes, aligned=aligned))
        expected = region_sampling.roi_align(upright.but(aligned=aligned))["output"]
        torch.testing.assert_close(aligned_found["output"], expected)


def test_a_quarter_turn_reads_the_image_from_the_side() -> None:
    """Against the clock, y pointing down: what was to the right of the centre is above it."""
    image = ramp(20, 20, 1.0, 10.0)
    box = tensor([[0, 20, 20, 8, 8, math.pi / 2]])
    call = ROTATED.but(input=image, rois=box, aligned_height=2, aligned_width=2)
    middle = {
        (-1, -1): (12, 8),
        (-1, 1): (8, 8),
        (1, -1): (12, 12),
        (1, 1): (8, 12),
    }  # bin: y and x of its middle, turned
    expected = tensor([[(lambda y, x: y + 10 * x)(*middle[r, c]) for c in (-1, 1)] for r in (-1, 1)])
    expected = (expected - 110) / 2 + 110  # the middles are one pixel from the centre at (10, 10), not two
    torch.testing.assert_close(region_sampling.roi_align_rotated(call)["output"][0, 0], expected)
    turned = call.but(clockwise=True, rois=box * tensor([1, 1, 1, 1, 1, -1]))
    torch.testing.assert_close(region_sampling.roi_align_rotated(turned)["output"][0, 0], expected)


def test_channels_turn_with_the_box() -> None:
    """Of four channels a group, each a constant: a turn by n + f of them mixes channels k - n and k - n + 1."""
    image = tensor([1, 2, 4, 8, 10, 20, 40, 80])[None, :, None, None].expand(1, 8, 20, 20)
    for turn, share, expected in ((0, 0.0, [1, 2, 4, 8]), (1, 0.0, [8, 1, 2, 4]), (1, 0.25, [6.25, 1.25, 2.5, 5])):
        box = tensor([[0, 20, 20, 8, 8, (turn + share) * math.pi / 2]])
        for clockwise in (False, True):
            call = EQUIVARIANT.but(features=image, rois=box, clockwise=clockwise)
            found = region_sampling.riroi_align_rotated(call)["output"][0, :, 0, 0]
            torch.testing.assert_close(found, tensor([*expected, *(10 * e for e in expected)]))
    back = EQUIVARIANT.but(features=image, rois=tensor([[0, 20, 20, 8, 8, -math.pi / 2]]))
    torch.testing.assert_close(region_sampling.riroi_align_rotated(back)["output"][0, :4, 1, 1], tensor([2, 4, 8, 1]))


def test_groups_of_one_channel_only_pool() -> None:
    image = numbers(2, 3, 9, 8)
    call = EQUIVARIANT.but(features=image, num_orientations=1, pooled_height=3)
    torch.testing.assert_close(
        region_sampling.riroi_align_rotated(call)["output"],
        region_sampling.roi_align_rotated(ROTATED.but(input=image))["output"],
    )


DEFORMED = Given(rois=ROIS, pooled_height=3, pooled_width=2, sampling_ratio=2, spatial_scale=0.5, gamma=0.1)


@pytest.mark.parametrize("offset", [None, torch.zeros(0), torch.zeros(3, 2, 3, 2).double()])
def test_without_offsets_a_deformed_pooling_is_an_aligned_one(offset: torch.Tensor | None) -> None:
    image = numbers(2, 3, 9, 8)
    expected = region_sampling.roi_align(UPRIGHT.but(input=image))["output"]
    found = region_sampling.deform_roi_pool(DEFORMED.but(input=image, offset=offset))["output"]
    torch.testing.assert_close(found, expected)


def test_offsets_count_in_tenths_of_the_box() -> None:
    """A box of 3 by 6 pixels on an inclined plane: x moves by 0.3, y by 0.6 for each unit."""
    image, offset = ramp(12, 11, 1.0, 10.0), numbers(1, 2, 3, 2)
    call = DEFORMED.but(input=image, rois=tensor([[0, 8, 8, 14, 20]]))
    still = region_sampling.deform_roi_pool(call)["output"]
    moved = region_sampling.deform_roi_pool(call.but(offset=offset))["output"]
    torch.testing.assert_close(moved - still, 10 * 0.3 * offset[:, :1] + 0.6 * offset[:, 1:])


@pytest.mark.parametrize("mode", [0, 1])
def test_aligned_regions_hand_gradients_back(mode: int) -> None:
    image, grad = numbers(2, 2, 7, 6), numbers(3, 2, 3, 2, seed=1)
    call = UPRIGHT.but(input=image, pool_mode=mode)
    kept = region_sampling.roi_align(call)
    backward = call.but(grad_output=grad, argmax_y=kept["argmax_y"], argmax_x=kept["argmax_x"]).after(input=image)
    found = region_sampling.roi_align_backward(backward)["grad_input"]
    torch.testing.assert_close(found, change(region_sampling.roi_align, call, "input", grad))


@pytest.mark.parametrize(
    ("pool", "back", "call", "name"),
    [
        (region_sampling.roi_align_rotated, region_sampling.roi_align_rotated_backward, ROTATED, "input"),
        (region_sampling.riroi_align_rotated, region_sampling.riroi_align_rotated_backward, EQUIVARIANT, "features"),
    ],
)
def test_rotated_regions_add_their_gradients(pool: Backward, back: Backward, call: Given, name: str) -> None:
    image, before = numbers(2, 4, 6, 7), numbers(2, 4, 6, 7, seed=2)
    grad = numbers(*pool(call.but(**{name: image}))["output"].shape, seed=1)
    found = back(call.but(bottom_grad=before, top_grad=grad))["bottom_grad"]
    torch.testing.assert_close(found - before, change(pool, call.but(**{name: image}), name, grad))
