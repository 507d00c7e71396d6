"""Which points of a cloud to look at; points are [batch, n, 3], or [batch, n, 2] for the chamfer distance."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import SCRATCH, reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


def _squares(centres: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    """Squared distances, [..., centres, points]."""
    return (centres[..., :, None, :] - points[..., None, :, :]).square().sum(-1)


def _named(near: torch.Tensor, count: int, otherwise: int) -> torch.Tensor:
    """The positions of the first `count` true elements; the first fills the rest, or `otherwise` and zeros the row."""
    found = near.nonzero().flatten().tolist()[:count]
    row = found + found[:1] * (count - len(found)) if found else [otherwise] + [0] * (count - 1)
    return torch.tensor(row, dtype=torch.int32)


@reference_for("diopiBallQueryMmcv")
def ball_query(call: "ReferenceCall") -> Outputs:
    squares, least, most = _squares(call["center_xyz"], call["xyz"]), call["min_radius"], call["max_radius"]
    near = (squares == 0) | ((squares >= least**2) & (squares < most**2))
    rows = [[_named(centre, call["sample_num"], 0) for centre in batch] for batch in near]
    return {"idx": torch.stack([torch.stack(batch) for batch in rows])}


@reference_for("diopiStackBallQueryMmcv")
def stack_ball_query(call: "ReferenceCall") -> Outputs:
    centres = call["center_xyz"].split(call["center_xyz_batch_cnt"].tolist())
    clouds = call["xyz"].split(call["xyz_batch_cnt"].tolist())
    near = [_squares(c, p) < call["max_radius"] ** 2 for c, p in zip(centres, clouds, strict=True)]
    return {"idx": torch.stack([_named(centre, call["sample_num"], -1) for cloud in near for centre in cloud])}


@reference_for("diopiKnnMmcv")
def knn(call: "ReferenceCall") -> Outputs:
    squares, order = _squares(call["new_xyz_tensor"], call["xyz_tensor"]).sort(dim=-1, stable=True)
    kept = call["nsample"]
    return {"idx_tensor": order[..., :kept].int(), "dist2_tensor": squares[..., :kept]}


@reference_for("diopiThreeNnMmcv")
def three_nn(call: "ReferenceCall") -> Outputs:
    squares, order = _squares(call["unknown"], call["known"]).sort(dim=-1, stable=True)
    return {"idx": order[..., :3].int(), "dist2": squares[..., :3]}


@reference_for("diopiFurthestPointSamplingMmcv")
def furthest_point_sampling(call: "ReferenceCall") -> Outputs:
    return _picked(_squares(call["points_xyz"], call["points_xyz"]), call["num_points"])


@reference_for("diopiFurthestPointSamplingWithDistMmcv")
def furthest_point_sampling_with_dist(call: "ReferenceCall") -> Outputs:
    return _picked(call["points_dist"], call["num_points"])


def _picked(distances: torch.Tensor, count: int) -> Outputs:
    """The first point of each cloud, then the furthest from those picked; `distances` are [batch, points, points]."""
    clouds = []
    for between in distances:
        picks = [0]
        while len(picks) < count:
            picks.append(int(between[picks].amin(0).argmax()))
        clouds.append(picks)
    return {"idx_tensor": torch.tensor(clouds, dtype=torch.int32), "temp_tensor": SCRATCH}


@reference_for("diopiChamferDistanceMmcv")
def chamfer_distance(call: "ReferenceCall") -> Outputs:
    squares = _squares(call["xyz1"], call["xyz2"])
    (dist1, idx1), (dist2, idx2) = squares.min(2), squares.min(1)
    return {"dist1": dist1, "dist2": dist2, "idx1": idx1.int(), "idx2": idx2.int()}
