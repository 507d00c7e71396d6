"""The written references of feature maps and filters against loops over single elements, and by hand."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as nnf

from diopi_conformance.references.filters import box_points
from diopi_conformance.references.registry import SCRATCH
from diopi_conformance.values.draw import parse_recipe
from tests.unit.conformance.written import numbers, reference

SCHEMA = Path(__file__).resolve().parents[3] / "schemas" / "ops" / "feature_maps.yaml"
Tensor = torch.Tensor


def at(image: Tensor, *place: int) -> float:
    """An element, or zero outside."""
    inside = all(0 <= i < n for i, n in zip(place, image.shape, strict=True))
    return float(image[place]) if inside else 0.0


def slopes(compute: Any, leaf: Tensor, grad: Tensor, step: float = 1e-5) -> Tensor:
    """The gradient by finite differences: `compute` gives a tensor like `grad` for one like `leaf`."""
    found = torch.empty_like(leaf)
    for i in range(leaf.numel()):
        nudge = torch.zeros_like(leaf)
        nudge.view(-1)[i] = step
        found.view(-1)[i] = ((compute(leaf + nudge) - compute(leaf - nudge)) * grad).sum() / (2 * step)
    return found


CARAFE = {"kernel_size": 3, "group_size": 2, "scale_factor": 2}


def test_carafe_sums_the_weighted_window_around_the_source() -> None:
    features, masks = numbers(2, 4, 3, 2), numbers(2, 18, 6, 4, seed=1)
    found = reference("diopiCarafeMmcv", features=features, masks=masks, **CARAFE)
    assert torch.equal(found["rfeatures"], features.permute(0, 2, 3, 1))
    assert found["routput"] is found["rmasks"] is SCRATCH
    for n, c, y, x in itertools.product(*map(range, (2, 4, 6, 4))):
        total = 0.0
        for i, j in itertools.product(range(3), range(3)):
            weight = masks[n, (c // 2) * 9 + i * 3 + j, y, x]
            total += weight * at(features[n, c], y // 2 + i - 1, x // 2 + j - 1)
        assert found["output"][n, c, y, x] == pytest.approx(float(total))
    naive = reference("diopiCarafeNaiveMmcv", features=features, masks=masks, **CARAFE)
    assert torch.equal(naive["output"], found["output"])


def test_a_mask_that_knows_only_the_middle_repeats_pixels() -> None:
    features, masks = numbers(1, 2, 3, 3), torch.zeros(1, 25, 9, 9, dtype=torch.float64)
    masks[:, 12] = 2
    given = {"kernel_size": 5, "group_size": 1, "scale_factor": 3}
    found = reference("diopiCarafeNaiveMmcv", features=features, masks=masks, **given)
    torch.testing.assert_close(found["output"], 2 * nnf.interpolate(features, scale_factor=3, mode="nearest"))


def test_both_forms_of_carafe_give_the_slopes() -> None:
    features, masks, grad = numbers(1, 4, 2, 2), numbers(1, 18, 4, 4, seed=1), numbers(1, 4, 4, 4, seed=2)
    found = reference("diopiCarafeNaiveBackwardMmcv", top_grad=grad, features=features, masks=masks, **CARAFE)

    def enlarged(source: Tensor, weights: Tensor) -> Tensor:
        return reference("diopiCarafeNaiveMmcv", features=source, masks=weights, **CARAFE)["output"]

    torch.testing.assert_close(found["bottom_grad"], slopes(lambda t: enlarged(t, masks), features, grad))
    torch.testing.assert_close(found["mask_grad"], slopes(lambda t: enlarged(features, t), masks, grad))
    kept = features.permute(0, 2, 3, 1)
    wide = reference("diopiCarafeBackwardMmcv", top_grad=grad, rfeatures=kept, masks=masks, **CARAFE)
    assert torch.equal(wide["bottom_grad"], found["bottom_grad"])
    assert torch.equal(wide["mask_grad"], found["mask_grad"])
    assert wide["rtop_grad"] is wide["rbottom_grad_hs"] is wide["rbottom_grad"] is wide["rmask_grad"] is SCRATCH


@pytest.mark.parametrize("patch", [(3, 3), (2, 4)])
def test_correlation_compares_windows_with_shifted_ones(patch: tuple[int, int]) -> None:
    first, second = numbers(2, 2, 5, 6), numbers(2, 2, 5, 6, seed=1)
    names = ("kH", "kW", "patchH", "patchW", "padH", "padW", "dilationH", "dilationW")
    given = dict(zip(names, (2, 3, *patch, 1, 2, 2, 1), strict=True))
    given |= {"dilation_patchH": 2, "dilation_patchW": 1, "dH": 1, "dW": 2}
    found = reference("diopiCorrelationMmcv", input1=first, input2=second, **given)["output"]
    assert found.shape == (2, *patch, 5, 4)
    for n, s, t, y, x in itertools.product(*map(range, found.shape)):
        down, right = 2 * s - 2 * (patch[0] - 1) // 2, t - (patch[1] - 1) // 2
        total = 0.0
        for c, i, j in itertools.product(range(2), range(2), range(3)):
            row, column = y - 1 + 2 * i, 2 * x - 2 + j
            total += at(first[n, c], row, column) * at(second[n, c], row + down, column + right)
        assert found[n, s, t, y, x] == pytest.approx(total)


def test_masked_columns_are_those_of_an_unfolded_image() -> None:
    image = numbers(1, 3, 4, 5)
    rows, columns = torch.tensor([0, 3, 2, 2]), torch.tensor([0, 4, 1, 1])
    found = reference(
        "diopiMaskedIm2colMmcv", im=image, mask_h_idx=rows, mask_w_idx=columns, kernel_h=3, kernel_w=3, pad_h=1, pad_w=1
    )
    expected = nnf.unfold(image, 3, padding=1)[0][:, rows * 5 + columns]
    assert torch.equal(found["col"], expected)


def test_columns_come_back_to_their_places() -> None:
    columns = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    places = {"mask_h_idx": torch.tensor([1, 0]), "mask_w_idx": torch.tensor([2, 0])}
    found = reference("diopiMaskedCol2imMmcv", col=columns, height=2, width=3, channels=2, **places)
    assert found["im"].tolist() == [[[[2, 0, 0], [0, 0, 1]], [[4, 0, 0], [0, 0, 3]]]]


@pytest.mark.parametrize("kind", [0, 1])
def test_attention_is_spread_as_the_paper_says(kind: int) -> None:
    source = numbers(2, 15, 3, 4)
    sizes = {"h_feature": 3, "w_feature": 4, "h_mask": 5, "w_mask": 3, "half_h_mask": 2, "half_w_mask": 1}
    found = reference("diopiPsamaskMmcv", input=source, psa_type=kind, num_=2, **sizes)["output"]
    for n, h, w, y, x in itertools.product(*map(range, (2, 3, 4, 3, 4))):
        masks = source[n, :, h, w].reshape(5, 3)
        wanted = at(masks, y - h + 2, x - w + 1)
        assert wanted == (found[n, y * 4 + x, h, w] if kind == 0 else found[n, h * 4 + w, y, x])


def test_groups_of_channels_move_along_time() -> None:
    source = numbers(2, 3, 4, 5)
    shift = torch.tensor([[1, -2], [0, 3]])
    found = reference("diopiTinShiftMmcv", input=source, shift=shift)["output"]
    for b, t, c, p in itertools.product(*map(range, source.shape)):
        then = t - int(shift[b, c // 2])
        assert found[b, t, c, p] == (source[b, then, c, p] if 0 <= then < 3 else 0)


def test_upfirdn_by_hand() -> None:
    found = reference(
        "diopiUpfirdn2dOpMmcv",
        **{"input": torch.tensor([[[[1.0], [2.0]]]]).double(), "kernel": torch.tensor([[1.0, 10.0, 100.0]]).double()},
        **{"up_x": 2, "up_y": 1, "down_x": 1, "down_y": 1, "pad_x0": 2, "pad_x1": 0, "pad_y0": 0, "pad_y1": 0},
    )
    assert found["out"].flatten().tolist() == [1, 10, 102, 20]  # of 0 0 1 0 2 0


def test_upfirdn_element_by_element() -> None:
    source, kernel = numbers(2, 4, 5, 3), numbers(2, 3, seed=1)
    given = dict(zip(("up_x", "up_y", "down_x", "down_y"), (3, 2, 2, 1), strict=True))
    pads = dict(zip(("pad_x0", "pad_x1", "pad_y0", "pad_y1"), (2, -1, -1, 3), strict=True))
    found = reference("diopiUpfirdn2dOpMmcv", input=source, kernel=kernel, **given, **pads)["out"]
    assert found.shape == (2, (4 * 2 - 1 + 3 - 2) // 1 + 1, (5 * 3 + 2 - 1 - 3) // 2 + 1, 3)
    for n, y, x, c in itertools.product(*map(range, found.shape)):
        total = 0.0
        for i, j in itertools.product(range(2), range(3)):
            row, column = y + i + 1, 2 * x + j - 2
            if row % 2 == 0 and column % 3 == 0:
                total += float(kernel[1 - i, 2 - j]) * at(source[n, :, :, c], row // 2, column // 3)
        assert found[n, y, x, c] == pytest.approx(total)


def leaky(**given: Any) -> Tensor:
    return reference("diopiFusedBiasLeakyreluMmcv", **{"alpha": 0.25, "scale": 2.0, **given})["out"]


def test_the_biased_leaky_relu_and_its_gradients() -> None:
    source, bias = torch.tensor([[1.0, -3.0]]), torch.tensor([-2.0, 2.0])
    assert leaky(input=source, bias=bias, act=3, grad=0).tolist() == [[-0.5, -0.5]]
    assert leaky(input=source, bias=bias, act=1, grad=0).tolist() == [[-2, -2]]
    assert leaky(input=source, act=3, grad=0).tolist() == [[2, -1.5]]
    assert leaky(input=source, refer=bias, act=3, grad=1).tolist() == [[0.5, -6]]
    assert leaky(input=source, refer=bias, act=1, grad=1).tolist() == [[2, -6]]
    assert leaky(input=source, refer=bias, act=3, grad=2).tolist() == [[0, 0]]
    image = torch.zeros(1, 2, 2, 2)
    assert leaky(input=image, bias=bias, act=1, grad=0).flatten().tolist() == [-4] * 4 + [4] * 4


def test_filters_are_turned_and_come_back() -> None:
    filters = numbers(2, 3, 2, 3, 3)
    places = [torch.randperm(18, generator=torch.Generator().manual_seed(r)) for r in range(4)]
    indices = (torch.stack(places, 1) + 1).reshape(2, 3, 3, 4).to(torch.uint8)
    found = reference("diopiActiveRotatedFilterMmcv", input=filters, indices=indices)["output"]
    assert found.shape == (8, 6, 3, 3)
    turned = found.reshape(2, 4, 3, 18)
    for o, r, i, e in itertools.product(*map(range, (2, 4, 3, 18))):
        assert turned[o, r, i, places[r][e]] == filters.reshape(2, 3, 18)[o, i, e]
    back = reference("diopiActiveRotatedFilterBackwardMmcv", grad_out=found, indices=indices)["grad_in"]
    torch.testing.assert_close(back, 4 * filters)


def test_a_box_without_an_angle_samples_its_corners() -> None:
    features = torch.arange(20, dtype=torch.float64).reshape(1, 1, 4, 5)
    boxes = torch.zeros(1, 4, 5, 5, dtype=torch.float64)
    boxes[0, 1, 2] = torch.tensor([1.5, 2.0, 2.0, 1.0, 0.0])  # rows 1 and 2, columns 1 and 3
    given = {"features": features, "best_bboxes": boxes, "spatial_scale": 1.0}
    found = reference("diopiRotatedFeatureAlignMmcv", points=5, **given)["output"]
    assert found[0, 0, 1, 2] == 7 + 9.5 + (6 + 8 + 11 + 13)
    assert reference("diopiRotatedFeatureAlignMmcv", points=1, **given)["output"][0, 0, 1, 2] == 7 + 9.5
    boxes[..., 4] = math.pi / 2  # turned, width and height change places: rows 0.5 and 2.5, columns 1.5 and 2.5
    found = reference("diopiRotatedFeatureAlignMmcv", points=5, **given)["output"]
    assert found[0, 0, 1, 2] == pytest.approx(7 + 9.5 + (4 + 5 + 14 + 15))


def test_samples_outside_of_the_image_are_nothing() -> None:
    features, boxes = torch.ones(1, 1, 2, 2, dtype=torch.float64), torch.zeros(1, 2, 2, 5, dtype=torch.float64)
    boxes[0, :, :, 0] = torch.tensor([[-1.01, -1.0], [2.0, 2.01]])
    found = reference("diopiRotatedFeatureAlignMmcv", features=features, best_bboxes=boxes, spatial_scale=1.0, points=1)
    assert found["output"].tolist() == [[[[1, 2], [2, 1]]]]


def test_alignment_gives_the_slopes() -> None:
    features, grad = numbers(1, 2, 3, 3), numbers(1, 2, 3, 3, seed=1)
    boxes = numbers(1, 3, 3, 5, seed=2).abs() * 2
    given = {"best_bboxes": boxes, "spatial_scale": 0.75, "points": 5}
    found = reference("diopiRotatedFeatureAlignBackwardMmcv", top_grad=grad, **given)["bottom_grad"]

    def aligned(t: Tensor) -> Tensor:
        return reference("diopiRotatedFeatureAlignMmcv", features=t, **given)["output"]

    torch.testing.assert_close(found, slopes(aligned, features, grad))


def test_no_box_of_a_case_samples_where_a_rounding_decides(program: Any) -> None:
    """Sampling jumps at the image's rim: all boxes that the schema lets a case draw keep off it."""
    found, _ = program(SCHEMA.read_text())
    for op in (op for op in found.ops if op.name.startswith("rotated_feature_align")):
        recipe = parse_recipe(str(dict(op.data)["best_bboxes"]), {}, {})
        drawn = torch.tensor(recipe.args, dtype=torch.float64)
        boxes = torch.cartesian_prod(*[drawn] * 5)[None, :, None]
        for row in (dict(row.values) for row in op.cases):
            rows, columns = box_points(boxes, row["spatial_scale"], row["points"])
            height, width = row.get("features", row.get("top_grad"))[2:]
            gaps = [(rows + 1).abs(), (rows - height).abs(), (columns + 1).abs(), (columns - width).abs()]
            assert min(float(gap.min()) for gap in gaps) > 0.01
