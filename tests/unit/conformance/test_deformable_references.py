"""Deformable convolution against torch's plain one, and sparse attention against sampling by torch."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from diopi_conformance.references import deformable
from tests.unit.conformance.calls import Given, between, numbers

# batch, channels, height, width, out channels, kernel, stride, padding, dilation, groups, parts
SETTINGS = [
    (2, 4, 7, 6, 6, (3, 3), (1, 1), (1, 1), (1, 1), 1, 1),
    (1, 4, 8, 9, 4, (3, 2), (2, 1), (1, 0), (1, 2), 2, 2),
    (1, 6, 6, 7, 3, (2, 3), (1, 2), (0, 2), (2, 1), 3, 3),
]


def setting(batch, channels, height, width, out, kernel, stride, padding, dilation, groups, parts) -> Any:
    image, weight = numbers(batch, channels, height, width), numbers(out, channels // groups, *kernel, seed=1)
    plain = F.conv2d(image, weight, None, stride, padding, dilation, groups)
    elements, area = parts * kernel[0] * kernel[1], plain.shape[2:]
    names = {"d": stride, "pad": padding, "dilation": dilation}
    first = {f"{n}{axis}": pair[k] for n, pair in names.items() for k, axis in enumerate("HW")}
    second = {
        f"{n}_{axis}": pair[k]
        for n, pair in {"stride": stride, "pad": padding, "dilation": dilation}.items()
        for k, axis in enumerate("hw")
    }
    call = Given(input=image, weight=weight, **first, **second, kH=kernel[0], kW=kernel[1], groups=groups, group=groups)
    return call, plain, (batch, elements, *area)


@pytest.fixture(params=SETTINGS, ids=["plain", "grouped", "parts"])
def drawn(request: pytest.FixtureRequest) -> Any:
    return setting(*request.param)


def doubled(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return sizes[0], 2 * sizes[1], *sizes[2:]


def test_without_offsets_it_is_a_convolution(drawn: Any) -> None:
    call, plain, sizes = drawn
    still = torch.zeros(doubled(sizes)).double()
    torch.testing.assert_close(deformable.deform_conv(call.but(offset=still))["output"], plain)
    ones, bias = torch.ones(sizes).double(), numbers(plain.shape[1])
    modulated = deformable.modulated_deform_conv
    torch.testing.assert_close(modulated(call.but(offset=still, mask=ones, with_bias=False))["output"], plain)
    found = modulated(call.but(offset=still, mask=ones / 2, with_bias=True, bias=bias))["output"]
    torch.testing.assert_close(found, plain / 2 + bias[:, None, None])


@pytest.mark.parametrize(("down", "across"), [(1, 0), (0, -2), (2, 1)])
def test_equal_offsets_shift_the_image(drawn: Any, down: int, across: int) -> None:
    call, _, sizes = drawn
    offset = torch.zeros(doubled(sizes)).double()
    offset[:, 0::2], offset[:, 1::2] = down, across
    height, width = call["input"].shape[2:]
    wide = F.pad(call["input"], (6, 6, 6, 6))  # what the shift moves out of sight is read by the padding
    padding = call["padH"], call["padW"]
    stride, dilation = (call["dH"], call["dW"]), (call["dilationH"], call["dilationW"])
    top, left = 6 + down - padding[0], 6 + across - padding[1]
    seen = wide[:, :, top : top + height + 2 * padding[0], left : left + width + 2 * padding[1]]
    expected = F.conv2d(seen, call["weight"], None, stride, 0, dilation, call["groups"])
    torch.testing.assert_close(deformable.deform_conv(call.but(offset=offset))["output"], expected)


def test_one_offset_moves_one_element_of_the_kernel() -> None:
    """A kernel of one row of two: the first reads half a pixel further down, with y before x."""
    image = torch.arange(12).double().reshape(1, 1, 3, 4)
    offset = torch.zeros(1, 4, 3, 3).double()
    offset[0, 0, 1, 1] = 0.5  # element 0, y
    offset[0, 3, 0, 2] = -0.25  # element 1, x
    one = dict.fromkeys(("dH", "dW", "dilationH", "dilationW", "groups"), 1)
    call = Given(input=image, weight=torch.tensor([[[[1.0, 10.0]]]]).double(), offset=offset, padH=0, padW=0, **one)
    plain = F.conv2d(image, call["weight"])
    difference = deformable.deform_conv(call)["output"] - plain
    expected = torch.zeros(3, 3).double()
    expected[1, 1] = 0.5 * 4
    expected[0, 2] = 10 * -0.25
    torch.testing.assert_close(difference[0, 0], expected)


def test_every_part_of_the_channels_has_its_own_offsets() -> None:
    call, _, sizes = setting(*SETTINGS[1])
    call = call.but(group=1, groups=1, weight=numbers(3, 4, 3, 2, seed=4))
    offset, mask = numbers(*doubled(sizes), seed=2), between(0, 1, *sizes, seed=3)
    whole = deformable.modulated_deform_conv(call.but(offset=offset, mask=mask))["output"]
    halves = [
        deformable.modulated_deform_conv(call.but(input=image, weight=weight, offset=moves, mask=factors))["output"]
        for image, weight, moves, factors in zip(
            call["input"].chunk(2, 1), call["weight"].chunk(2, 1), offset.chunk(2, 1), mask.chunk(2, 1), strict=True
        )
    ]
    torch.testing.assert_close(whole, halves[0] + halves[1])


def test_gradients_are_the_change_of_the_result(drawn: Any) -> None:
    call, plain, sizes = drawn
    call = call.but(offset=between(0.1, 0.9, *doubled(sizes), seed=2))  # between pixels, where it is smooth
    grad = numbers(*plain.shape, seed=5)
    back = deformable.deform_conv_backward_input(call.but(gradOutput=grad))
    back |= deformable.deform_conv_backward_parameters(call.but(gradOutput=grad, scale=0.5))
    for name, found, scale in (("input", "gradInput", 1), ("offset", "gradOffset", 1), ("weight", "gradWeight", 0.5)):
        way = numbers(*call[name].shape, seed=6)
        ends = [deformable.deform_conv(call.but(**{name: call[name] + s * way}))["output"] for s in (1e-6, -1e-6)]
        expected = ((ends[0] - ends[1]) * grad).sum() / 2e-6 * scale
        assert back[found].shape == call[name].shape
        assert float((back[found] * way).sum()) == pytest.approx(float(expected), rel=1e-6)


def test_sparse_attention_adds_up_samples_of_all_levels() -> None:
    batch, heads, channels, queries, points = 2, 3, 4, 5, 2
    shapes = torch.tensor([[6, 5], [3, 2]])
    value = numbers(batch, 36, heads, channels)
    places = between(-0.1, 1.1, batch, queries, heads, 2, points, 2, seed=1)
    weights = between(0, 1, batch, queries, heads, 2, points, seed=2)
    call = Given(
        value=value,
        spatial_shapes=shapes,
        level_start_index=torch.tensor([0, 30]),
        sampling_loc=places,
        attn_weight=weights,
        im2col_step=2,
    )
    expected = torch.zeros(batch, heads, channels, queries).double()
    for level, (height, width, start) in enumerate([(6, 5, 0), (3, 2, 30)]):
        maps = value[:, start : start + height * width].permute(0, 2, 3, 1).reshape(-1, channels, height, width)
        grid = 2 * places[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1
        samples = F.grid_sample(maps, grid, align_corners=False).reshape(batch, heads, channels, queries, points)
        expected += (samples * weights[:, :, :, level].transpose(1, 2)[:, :, None]).sum(-1)
    found = deformable.ms_deform_attn(call)["out"]
    torch.testing.assert_close(found, expected.permute(0, 3, 1, 2).reshape(batch, queries, heads * channels))
    leaf = places.clone().requires_grad_(True)
    grad = numbers(*found.shape, seed=3)
    (back,) = torch.autograd.grad(deformable.ms_deform_attn(call.but(sampling_loc=leaf))["out"], leaf, grad)
    way = numbers(*places.shape, seed=4)
    ends = [deformable.ms_deform_attn(call.but(sampling_loc=places + s * way))["out"] for s in (1e-7, -1e-7)]
    assert float((back * way).sum()) == pytest.approx(float(((ends[0] - ends[1]) * grad).sum() / 2e-7), rel=1e-5)
