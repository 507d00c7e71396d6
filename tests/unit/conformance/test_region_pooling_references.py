"""Pooling of regions without a grid: pixels and borders by hand, exact means against many samples, differences."""

import pytest
import torch
import torch.nn.functional as F

from diopi_conformance.references import region_pooling, region_sampling
from tests.unit.conformance.calls import Given, between, change, numbers, ramp, tensor

ROIS = tensor([[0, 2, 3, 12, 9], [1, 5, 1, 9, 13], [1, 4.5, 4, 8, 14.5]])
SAMPLED = Given(aligned_height=3, aligned_width=2, pool_mode=1, spatial_scale=0.5, aligned=False)


def test_the_greatest_pixel_that_a_bin_touches_by_hand() -> None:
    image = ramp(6, 6, 6.0, 1.0)  # each pixel is its own position
    call = Given(input=image, rois=tensor([[0, 2, 2, 9, 9]]), pooled_height=2, pooled_width=2, spatial_scale=0.5)
    # x and y from 1 to 5 with the last pixel: bins 1..3 and 3..5
    found = region_pooling.roi_pool(call)
    assert found["argmax"].flatten().tolist() == [14, 16, 26, 28]
    torch.testing.assert_close(found["output"].flatten(), tensor([14, 16, 26, 28]))
    wide = region_pooling.roi_pool(call.but(rois=tensor([[0, 1, 1, 8, 8]])))  # 0.5 to 4.5: bins 0..3 and 2..5
    assert wide["argmax"].flatten().tolist() == [14, 16, 26, 28]
    least = region_pooling.roi_pool(call.but(rois=tensor([[0, 1, 1, 8, 8]]), input=-image))
    assert least["argmax"].flatten().tolist() == [0, 2, 12, 14]


def test_an_empty_bin_gives_zero_and_names_nothing() -> None:
    call = Given(
        input=ramp(4, 4, 1, 1) + 5, rois=tensor([[0, -6, 0, 3, 3]]), pooled_height=1, pooled_width=2, spatial_scale=1
    )
    found = region_pooling.roi_pool(call)  # x from -6 to 4: bins -6..-1 and -1..4
    assert found["output"].flatten().tolist() == [0, 11]
    assert found["argmax"].flatten().tolist() == [-1, 15]


def test_an_equal_pixel_is_named_by_the_first() -> None:
    call = Given(
        input=torch.ones(1, 1, 4, 4), rois=tensor([[0, 1, 1, 2, 2]]), pooled_height=1, pooled_width=1, spatial_scale=1
    )
    assert region_pooling.roi_pool(call)["argmax"].item() == 5


def test_the_exact_mean_is_what_many_samples_come_to() -> None:
    image = F.pad(numbers(2, 3, 6, 5), (3, 3, 3, 3))  # zeros around, as the continuation has them
    call = Given(input=image, rois=ROIS + tensor([0, 2, 2, 2, 2]), pooled_height=3, pooled_width=2, spatial_scale=0.5)
    exact = region_pooling.prroi_pool(call)["output"]
    samples = SAMPLED.but(input=image, rois=call["rois"], sampling_ratio=60)
    torch.testing.assert_close(exact, region_sampling.roi_align(samples)["output"], atol=2e-3, rtol=0)


def test_the_exact_mean_of_one_pixel_by_hand() -> None:
    """The hat about pixel (1, 1) over the square from 1 to 2: a quarter of its volume, which is 1."""
    image = torch.zeros(1, 1, 4, 4).double()
    image[0, 0, 1, 1] = 1
    call = Given(input=image, rois=tensor([[0, 1, 1, 2, 2]]), pooled_height=1, pooled_width=1, spatial_scale=1.0)
    assert region_pooling.prroi_pool(call)["output"].item() == pytest.approx(0.25)
    edge = call.but(input=image.roll((-1, -1), (2, 3)), rois=tensor([[0, -2, -2, 2, 2]]))
    assert region_pooling.prroi_pool(edge)["output"].item() == pytest.approx(1 / 16)
    empty = call.but(rois=tensor([[0, 2, 1, 2, 3]]))
    assert region_pooling.prroi_pool(empty)["output"].item() == 0


def test_the_gradient_of_the_boxes_is_the_change_of_the_mean() -> None:
    image, grad = numbers(2, 3, 9, 8), numbers(3, 3, 3, 2, seed=1)
    call = Given(input=image, rois=ROIS, grad_output=grad, pooled_height=3, pooled_width=2, spatial_scale=0.5)
    found = region_pooling.prroi_pool_coor_backward(call)["grad_rois"]
    assert not found[:, 0].any()
    for roi in range(3):
        for k in range(1, 5):
            ends = []
            for step in (1e-5, -1e-5):
                rois = ROIS.clone()
                rois[roi, k] += step
                ends.append((region_pooling.prroi_pool(call.but(rois=rois))["output"] * grad).sum())
            assert float(found[roi, k]) == pytest.approx(float((ends[0] - ends[1]) / 2e-5), abs=1e-5)


def test_borders_take_the_greatest_sample_of_their_quarter_by_hand() -> None:
    plane = ramp(8, 9, 1.0, 10.0)[0, 0]
    image = torch.stack([plane, -plane, plane, -plane])[None]
    call = Given(input=image, boxes=tensor([[[1, 2, 5, 6]]]), pool_size=2)
    found = region_pooling.border_align(call)
    # top: (5, 2); left: (1, 2); bottom: (5, 6), where its count begins; right: (5, 2), where it ends
    torch.testing.assert_close(found["output"], tensor([[[[52, -12, 56, -52]]]]))
    assert found["argmax_idx"].flatten().tolist() == [2, 0, 0, 2]
    flat = region_pooling.border_align(call.but(input=torch.ones_like(image)))
    assert not flat["argmax_idx"].any()


def test_the_greatest_pixels_get_the_gradients() -> None:
    image, grad = numbers(2, 2, 7, 6), numbers(3, 2, 2, 2, seed=1)
    call = Given(input=image, rois=ROIS.round(), pooled_height=2, pooled_width=2, spatial_scale=0.5)
    argmax = region_pooling.roi_pool(call)["argmax"]
    found = region_pooling.roi_pool_backward(call.but(grad_output=grad, argmax=argmax).after(input=image))["grad_input"]
    torch.testing.assert_close(found, change(region_pooling.roi_pool, call, "input", grad))
    argmax = argmax.clone()
    argmax[0, 0, 0, 0] = -1
    less = region_pooling.roi_pool_backward(call.but(grad_output=grad, argmax=argmax).after(input=image))["grad_input"]
    assert (found - less).sum() == pytest.approx(float(grad[0, 0, 0, 0]))


def test_borders_hand_gradients_back_to_their_greatest_samples() -> None:
    image, grad = numbers(2, 8, 6, 7), numbers(2, 2, 3, 4, seed=1)
    corner = between(-1, 2, 2, 3, 2)
    call = Given(input=image, boxes=torch.cat([corner, corner + between(2, 6, 2, 3, 2, seed=3)], -1), pool_size=3)
    kept = region_pooling.border_align(call)["argmax_idx"]
    backward = call.but(grad_output=grad, argmax_idx=kept).after(input=image)
    found = region_pooling.border_align_backward(backward)["grad_input"]
    torch.testing.assert_close(found, change(region_pooling.border_align, call, "input", grad))
