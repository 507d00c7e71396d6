"""Voxels and convolutions over them: references against dense ones and by hand, and what may come in any order."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as nnf

from diopi_conformance.judgement.special import written_judgement
from diopi_conformance.values.elements import Array
from diopi_conformance.values.views import layout
from tests.unit.conformance.written import numbers, reference

Tensor = torch.Tensor


GRID = {
    "voxel_size": torch.tensor([1.0, 2.0, 4.0]),
    "coors_range": torch.tensor([0.0, -2.0, 0.0, 3.0, 2.0, 4.0]),
    "NDim": 3,
}
POINTS = torch.tensor(
    [
        [0.5, -1.0, 1.0, 10.0],  # x 0, y 0
        [2.5, 1.0, 2.0, 20.0],  # x 2, y 1
        [0.6, -0.5, 3.0, 30.0],  # with the first
        [3.5, 0.0, 1.0, 40.0],  # outside
        [0.7, -0.6, 0.0, 50.0],  # with the first: one too many
        [1.5, 1.0, 1.0, 60.0],  # x 1, y 1: one voxel too many
    ],
    dtype=torch.float64,
)


def test_points_are_sorted_into_voxels() -> None:
    found = reference("diopiDynamicVoxelizeMmcv", points=POINTS, **GRID)
    assert found["coors"].tolist() == [[0, 0, 0], [0, 1, 2], [0, 0, 0], [-1, -1, -1], [0, 0, 0], [0, 1, 1]]
    limits = {"max_points": 2, "max_voxels": 2, "deterministic": True}
    found = reference("diopiHardVoxelizeMmcv", points=POINTS, **GRID, **limits)
    assert found["voxel_num"].tolist() == 2
    assert found["coors"].tolist() == [[0, 0, 0], [0, 1, 2]]
    assert found["num_points_per_voxel"].tolist() == [2, 1]
    assert torch.equal(found["voxels"][0], POINTS[[0, 2]])
    assert torch.equal(found["voxels"][1, 0], POINTS[1])
    assert not found["voxels"][1, 1].any()


def test_all_points_have_their_place_where_there_is_room() -> None:
    points = numbers(50, 4) * 2
    limits = {"max_points": 50, "max_voxels": 12, "deterministic": True}
    found = reference("diopiHardVoxelizeMmcv", points=points, **GRID, **limits)
    own = reference("diopiDynamicVoxelizeMmcv", points=points, **GRID)["coors"]
    for voxel in range(int(found["voxel_num"])):
        members = points[(own == found["coors"][voxel]).all(-1)]
        assert torch.equal(found["voxels"][voxel, : len(members)], members)
        assert found["num_points_per_voxel"][voxel] == len(members)
    assert found["num_points_per_voxel"].sum() == (own[:, 0] >= 0).sum() > 0


def judge_voxels(actual: dict[str, Array], before: float, deterministic: bool) -> tuple[dict[str, Array], str]:
    """What the judgement makes of results that stood in tensors full of `before`, and its message."""
    limits = {"max_points": 4, "max_voxels": 5, "deterministic": deterministic}
    expected = {n: v.numpy() for n, v in reference("diopiHardVoxelizeMmcv", points=POINTS, **GRID, **limits).items()}
    buffers = []
    for label, value in expected.items():
        place = layout("contiguous", value.shape, writable=True)
        dtype = {"voxels": "f64", "voxel_num": "i64"}.get(label, "i32")
        words = np.full(place.elements, before, dtype={"f64": np.float64, "i64": np.int64}.get(dtype, np.int32))
        buffers.append(SimpleNamespace(label=label, dtype=dtype, layout=place, before=words))
    function: Any = SimpleNamespace(symbol="diopiHardVoxelizeMmcv")
    prepared: Any = SimpleNamespace(expected=expected, buffers=buffers, values={"deterministic": deterministic})
    judgement = written_judgement(function)
    assert judgement is not None
    found = {name: np.array(actual.get(name, value)) for name, value in expected.items()}
    skipped, message = judgement(prepared, found)
    assert skipped == ()
    same = {name: np.array_equal(found[name], value) for name, value in expected.items()}
    return same, message


def voxel_results(fill: float) -> dict[str, Array]:
    """Right results, with `fill` where there is no voxel or point."""
    limits = {"max_points": 4, "max_voxels": 5, "deterministic": True}
    found = {n: v.numpy() for n, v in reference("diopiHardVoxelizeMmcv", points=POINTS, **GRID, **limits).items()}
    found["coors"][3:], found["num_points_per_voxel"][3:] = fill, fill
    for voxel, count in enumerate([3, 1, 1, 0, 0]):
        found["voxels"][voxel, count:] = fill
    return found


ALL_RIGHT = dict.fromkeys(("voxels", "coors", "num_points_per_voxel", "voxel_num"), True)


@pytest.mark.parametrize("fill", [0, 7])
def test_what_holds_nothing_is_zero_or_left_alone(fill: float) -> None:
    assert judge_voxels(voxel_results(fill), before=7, deterministic=True) == (ALL_RIGHT, "")


def test_what_holds_nothing_may_not_be_anything() -> None:
    wrong = {**ALL_RIGHT, "voxels": False, "coors": False, "num_points_per_voxel": False}
    assert judge_voxels(voxel_results(8), before=7, deterministic=True) == (wrong, "")


def test_another_number_of_voxels_is_told() -> None:
    actual = {**voxel_results(0), "voxel_num": np.asarray(4)}
    assert judge_voxels(actual, before=7, deterministic=True)[1] == "'voxel_num' is 4, expected 3"


def in_another_order() -> dict[str, Array]:
    actual = voxel_results(0)
    for name in ("coors", "num_points_per_voxel", "voxels"):
        actual[name][:3] = actual[name][[2, 0, 1]]
    actual["voxels"][1, :3] = actual["voxels"][1, [1, 2, 0]]
    return actual


def test_voxels_and_points_come_in_any_order_where_none_was_asked_for() -> None:
    assert judge_voxels(in_another_order(), before=7, deterministic=False) == (ALL_RIGHT, "")
    same, _ = judge_voxels(in_another_order(), before=7, deterministic=True)
    assert not same["coors"] and not same["voxels"]
    wrong = in_another_order()
    wrong["voxels"][1, 0, 3] += 1
    same, _ = judge_voxels(wrong, before=7, deterministic=False)
    assert same["coors"] and not same["voxels"]


COORS = torch.tensor([[1, 0, 2], [0, 5, 1], [1, 0, 2], [-1, 0, 0], [0, 5, 1], [1, 0, 0]])
FEATS = torch.tensor([[1.0], [10.0], [3.0], [99.0], [-4.0], [7.0]], dtype=torch.float64)


@pytest.mark.parametrize(("kind", "rows"), [(0, [6, 7, 4]), (1, [3, 7, 2]), (2, [10, 7, 3])])
def test_points_of_equal_voxels_become_one_row(kind: int, rows: list[float]) -> None:
    found = reference("diopiDynamicPointToVoxelMmcv", feats=FEATS, coors=COORS.int(), reduce_type=kind)["outlist"]
    assert [t.tolist() for t in found] == [
        [[row] for row in rows],
        [[0, 5, 1], [1, 0, 0], [1, 0, 2]],
        [2, 0, 2, -1, 0, 1],
        [2, 1, 2],
    ]


def test_rows_of_voxels_may_come_in_any_order() -> None:
    expected = [
        t.numpy() for t in reference("diopiDynamicPointToVoxelMmcv", feats=FEATS, coors=COORS, reduce_type=0)["outlist"]
    ]
    order = [2, 0, 1]
    actual = {f"outlist[{i}]": expected[i][order] for i in (0, 1, 3)}
    actual["outlist[2]"] = np.array([0, 1, 0, -1, 1, 2])
    function: Any = SimpleNamespace(symbol="diopiDynamicPointToVoxelMmcv")
    judgement = written_judgement(function)
    assert judgement is not None
    prepared: Any = SimpleNamespace(expected={"outlist": expected})
    assert judgement(prepared, actual) == ((), "")
    for i, value in enumerate(expected):
        assert np.array_equal(actual[f"outlist[{i}]"], value)
    actual["outlist[1]"] = expected[1] + 1
    kept = dict(actual)
    assert judgement(prepared, actual) == ((), "")
    assert all(actual[label] is value for label, value in kept.items())  # to be told by the elements


@pytest.mark.parametrize("kind", [0, 1])
def test_rows_hand_their_gradient_back(kind: int) -> None:
    feats = FEATS.clone().requires_grad_(True)
    out, _, rows, counts = reference("diopiDynamicPointToVoxelMmcv", feats=feats, coors=COORS, reduce_type=kind)[
        "outlist"
    ]
    grad = numbers(3, 1)
    out.backward(grad)
    found = reference(
        "diopiDynamicPointToVoxelBackwardMmcv",
        **{"grad_reduced_feats": grad, "feats": FEATS, "reduced_feats": out.detach(), "reduce_type": kind},
        **{"coors_idx": rows, "reduce_count": counts},
    )
    torch.testing.assert_close(found["grad_feats"], feats.grad)


def test_a_maximum_hands_its_gradient_to_the_first_that_reaches_it() -> None:
    found = reference(
        "diopiDynamicPointToVoxelBackwardMmcv",
        feats=torch.tensor([[1.0, 5.0], [2.0, 0.0], [2.0, 5.0], [9.0, 9.0]]),
        reduced_feats=torch.tensor([[2.0, 5.0]]),
        grad_reduced_feats=torch.tensor([[3.0, 4.0]]),
        coors_idx=torch.tensor([0, 0, 0, -1]),
        reduce_count=torch.tensor([3]),
        reduce_type=2,
    )
    assert found["grad_feats"].tolist() == [[0, 4], [3, 0], [0, 0], [0, 0]]


def rule_book(length: int) -> dict[str, Tensor]:
    """The pairs of a kernel of three over a full line of voxels, which do not grow: those of a dense convolution."""
    pairs = torch.full((3, 2, length), -1, dtype=torch.int32)
    counts = []
    for k in range(3):
        valid = [(i, i + 1 - k) for i in range(length) if 0 <= i + 1 - k < length]
        pairs[k, :, : len(valid)] = torch.tensor(valid, dtype=torch.int32).T
        counts.append(len(valid))
    return {"indicePairs": pairs, "indiceNum": torch.tensor(counts, dtype=torch.int32)}


@pytest.mark.parametrize("same", [0, 1])
def test_a_full_line_of_voxels_is_convolved_densely(same: int) -> None:
    features, filters = numbers(6, 4).requires_grad_(True), numbers(3, 1, 1, 4, 5, seed=1).requires_grad_(True)
    given = {**rule_book(6), "_inverse": 0, "_subM": same}
    dense = nnf.conv1d(features.T[None], filters.reshape(3, 4, 5).permute(2, 1, 0), padding=1)[0].T
    kept = features.detach(), filters.detach()
    found = reference("diopiIndiceConvMmcv", features=kept[0], filters=kept[1], numActOut=6, **given)["out"]
    torch.testing.assert_close(found, dense.detach())
    bias, grad = numbers(5, seed=2), numbers(6, 5, seed=3)
    fused = reference(
        "diopiFusedIndiceConvBatchnormMmcv", features=kept[0], filters=kept[1], bias=bias, numActOut=6, **given
    )
    torch.testing.assert_close(fused["out"], dense.detach() + bias)
    dense.backward(grad)
    back = reference("diopiIndiceConvBackwardMmcv", features=kept[0], filters=kept[1], outGrad=grad, **given)["outlist"]
    torch.testing.assert_close(back[0], features.grad)
    torch.testing.assert_close(back[1], filters.grad)


def test_an_inverse_convolution_goes_the_other_way() -> None:
    book = {"indicePairs": torch.tensor([[[0, 1], [2, 0]]]), "indiceNum": torch.tensor([2])}
    given = {**book, "filters": torch.tensor([[[10.0]]]), "_subM": 0}
    source = torch.tensor([[1.0], [2.0], [3.0]])
    forward = reference("diopiIndiceConvMmcv", features=source, numActOut=3, _inverse=0, **given)["out"]
    assert forward.flatten().tolist() == [20, 0, 10]
    back = reference("diopiIndiceConvMmcv", features=source, numActOut=2, _inverse=1, **given)["out"]
    assert back.flatten().tolist() == [30, 10]


def test_pooling_takes_the_greatest_of_pairs_and_zero() -> None:
    features, book = numbers(6, 3), rule_book(6)
    found = reference("diopiIndiceMaxpoolMmcv", features=features, numAct=7, **book)["out"]
    dense = nnf.max_pool1d(features.T[None], 3, stride=1, padding=1)[0].T.clamp(min=0)
    assert torch.equal(found[:6], dense)
    assert not found[6].any()
    grad = numbers(7, 3, seed=1)
    back = reference("diopiIndiceMaxpoolBackwardMmcv", features=features, outFeatures=found, outGrad=grad, **book)[
        "out"
    ]
    for i, c in itertools.product(range(6), range(3)):
        near = [o for o in (i - 1, i, i + 1) if 0 <= o < 6 and found[o, c] == features[i, c]]
        assert back[i, c] == pytest.approx(sum(float(grad[o, c]) for o in near))
