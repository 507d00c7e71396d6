"""Neighbours of points: the written references against loops, and judgements that let equal distances pass."""

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from diopi_conformance.judgement.special import written_judgement
from diopi_conformance.references.registry import SCRATCH
from tests.unit.conformance.written import numbers, reference

Tensor = torch.Tensor


def finding(
    symbol: str, actual: dict[str, Any], expected: dict[str, Any], **values: Any
) -> tuple[tuple[str, ...], str]:
    function: Any = SimpleNamespace(symbol=symbol)
    judgement = written_judgement(function)
    assert judgement is not None
    arrays = {name: np.asarray(value) for name, value in values.items()}
    wanted = {name: np.asarray(value) for name, value in expected.items() if value is not SCRATCH}
    case = SimpleNamespace(dtypes=dict.fromkeys([*wanted, *arrays], "f32"))
    prepared: Any = SimpleNamespace(values=arrays, expected=wanted, case=case, function=function)
    return judgement(prepared, actual)


def line(*places: float) -> Tensor:
    """One cloud along the first axis."""
    return torch.tensor([[[place, 0.0, 0.0] for place in places]], dtype=torch.float64)


BALL = {"min_radius": 1.0, "max_radius": 3.0}


def test_a_ball_names_the_first_points_in_it() -> None:
    found = reference(
        "diopiBallQueryMmcv", center_xyz=line(0, 5), xyz=line(3, 0.5, 2, 0, -1, 4.5, 7), sample_num=4, **BALL
    )
    assert found["idx"].tolist() == [[[2, 3, 4, 2], [0, 6, 0, 0]]]  # 3 is too far from 0; 4.5 too near to 5
    found = reference("diopiBallQueryMmcv", center_xyz=line(0), xyz=line(2, 0, -1), sample_num=2, **BALL)
    assert found["idx"].tolist() == [[[0, 1]]]


STACK = {
    "center_xyz": line(0, 9, 0)[0],
    "center_xyz_batch_cnt": torch.tensor([2, 1]),
    "xyz": line(1, 0, 7, 5, 0.5)[0],
    "xyz_batch_cnt": torch.tensor([2, 3]),
}


def test_balls_in_stacked_clouds_count_from_their_first_point() -> None:
    found = reference("diopiStackBallQueryMmcv", **STACK, max_radius=1.5, sample_num=3)
    assert found["idx"].tolist() == [[0, 1, 0], [-1, 0, 0], [2, 2, 2]]
    assert reference("diopiStackBallQueryMmcv", **STACK, max_radius=1.0, sample_num=1)["idx"].tolist() == [
        [1],
        [-1],
        [2],
    ]


def test_what_follows_the_sign_of_an_empty_ball_does_not_matter() -> None:
    expected = reference("diopiStackBallQueryMmcv", **STACK, max_radius=1.5, sample_num=3)
    actual = {"idx": np.array([[0, 1, 0], [-1, -1, 77], [2, 2, 2]])}
    assert finding("diopiStackBallQueryMmcv", actual, expected) == ((), "")
    assert actual["idx"].tolist() == expected["idx"].tolist()
    wrong = {"idx": np.array([[0, 1, 1], [0, 0, 0], [2, 2, 2]])}
    finding("diopiStackBallQueryMmcv", wrong, expected)
    assert wrong["idx"].tolist() == [[0, 1, 1], [0, 0, 0], [2, 2, 2]]


@pytest.mark.parametrize("kept", [1, 4])
def test_nearest_points_are_those_that_a_search_finds(kept: int) -> None:
    points, centres = numbers(2, 9, 3), numbers(2, 5, 3, seed=1)
    found = reference("diopiKnnMmcv", xyz_tensor=points, new_xyz_tensor=centres, nsample=kept)
    for b, m in itertools.product(range(2), range(5)):
        order = sorted(range(9), key=lambda i: float((points[b, i] - centres[b, m]).norm()))[:kept]
        assert found["idx_tensor"][b, m].tolist() == order
        expected = [float(sum((points[b, i, d] - centres[b, m, d]) ** 2 for d in range(3))) for i in order]
        assert found["dist2_tensor"][b, m].tolist() == pytest.approx(expected)
    three = reference("diopiThreeNnMmcv", unknown=centres, known=points)
    wide = reference("diopiKnnMmcv", xyz_tensor=points, new_xyz_tensor=centres, nsample=3)
    assert torch.equal(three["idx"], wide["idx_tensor"])
    assert torch.equal(three["dist2"], wide["dist2_tensor"])


def test_either_of_two_equal_neighbours_is_right() -> None:
    clouds = {"xyz_tensor": line(1, -1, 2, 4), "new_xyz_tensor": line(0)}
    expected = reference("diopiKnnMmcv", **clouds, nsample=3)

    def judged(*row: int) -> str:
        return finding("diopiKnnMmcv", {"idx_tensor": np.array([[row]])}, expected, **clouds)[1]

    assert judged(0, 1, 2) == judged(1, 0, 2) == ""
    assert judged(0, 0, 2) == "'idx_tensor' names one point twice"
    assert judged(0, 1, 4) == "'idx_tensor' names points that there are not"
    assert judged(0, 2, 1) == "'idx_tensor' leads to the squared distance 4.0 at [0, 0, 1], not 1.0"


def test_the_chamfer_distance_looks_both_ways() -> None:
    first = torch.tensor([[[0.0, 0.0], [3.0, 4.0]]], dtype=torch.float64)
    second = torch.tensor([[[0.0, 1.0], [3.0, 3.0], [9.0, 9.0]]], dtype=torch.float64)
    found = reference("diopiChamferDistanceMmcv", xyz1=first, xyz2=second)
    assert found["dist1"].tolist() == [[1, 1]] and found["idx1"].tolist() == [[0, 1]]
    assert found["dist2"].tolist() == [[1, 1, 61]] and found["idx2"].tolist() == [[0, 1, 1]]
    actual = {name: found[name].numpy() for name in ("idx1", "idx2")}
    assert finding("diopiChamferDistanceMmcv", actual, found, xyz1=first, xyz2=second) == (("idx1", "idx2"), "")
    actual["idx2"] = np.array([[0, 1, 0]])
    message = "'idx2' leads to the squared distance 162.0 at [0, 2, 0], not 61.0"
    assert finding("diopiChamferDistanceMmcv", actual, found, xyz1=first, xyz2=second)[1] == message


def test_the_chamfer_distance_has_the_gradient_of_the_formula() -> None:
    first, second = numbers(2, 4, 2).requires_grad_(True), numbers(2, 3, 2, seed=1).requires_grad_(True)
    found = reference("diopiChamferDistanceMmcv", xyz1=first, xyz2=second)
    grad1, grad2 = numbers(2, 4, seed=2), numbers(2, 3, seed=3)
    torch.autograd.backward([found["dist1"], found["dist2"]], [grad1, grad2])
    expected1, expected2 = torch.zeros(2, 4, 2).double(), torch.zeros(2, 3, 2).double()
    for b, i in itertools.product(range(2), range(4)):
        j = int(found["idx1"][b, i])
        step = 2 * grad1[b, i] * (first[b, i] - second[b, j]).detach()
        expected1[b, i] += step
        expected2[b, j] -= step
    for b, j in itertools.product(range(2), range(3)):
        i = int(found["idx2"][b, j])
        step = 2 * grad2[b, j] * (second[b, j] - first[b, i]).detach()
        expected2[b, j] += step
        expected1[b, i] -= step
    torch.testing.assert_close(first.grad, expected1)
    torch.testing.assert_close(second.grad, expected2)


def test_the_furthest_point_is_picked_each_time() -> None:
    points = line(0, 1, 2, 3, 10)
    found = reference("diopiFurthestPointSamplingMmcv", points_xyz=points, num_points=4)
    assert found["idx_tensor"].tolist() == [[0, 4, 3, 1]]
    assert found["temp_tensor"] is SCRATCH
    distances = torch.cdist(points, points)
    by_distance = reference("diopiFurthestPointSamplingWithDistMmcv", points_dist=distances, num_points=3)
    assert by_distance["idx_tensor"].tolist() == [[0, 4, 3]]


@pytest.mark.parametrize(
    ("picks", "message"),
    [
        ([0, 4, 3, 1], ""),
        ([0, 4, 3, 2], ""),  # as far as 1 from those before it
        ([1, 4, 3, 0], "'idx_tensor' begins with 1 at [0, 0], not with the first point"),
        ([0, 4, 2, 1], "'idx_tensor' picks a point at 4.0 at [0, 2], but the furthest one is at 9.0"),
        ([0, 5, 2, 1], "'idx_tensor' names points that there are not"),
    ],
)
def test_picks_are_judged_by_their_distances(picks: list[int], message: str) -> None:
    values = {"points_xyz": line(0, 1, 2, 3, 10), "num_points": 4}
    expected = reference("diopiFurthestPointSamplingMmcv", **values)
    actual = {"idx_tensor": np.array([picks])}
    assert finding("diopiFurthestPointSamplingMmcv", actual, expected, **values) == (("idx_tensor",), message)
    distances = torch.cdist(values["points_xyz"], values["points_xyz"]) ** 2
    by_distance = finding("diopiFurthestPointSamplingWithDistMmcv", actual, expected, points_dist=distances)
    assert by_distance == (("idx_tensor",), message)
