"""Point clouds as voxels, by the definitions of VoxelNet and SECOND."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]
_SUM, _MEAN, _MAX = range(3)


def _voxel_of_points(call: "ReferenceCall") -> torch.Tensor:
    """The voxel of each point, [points, NDim], last coordinate first; -1 for points outside."""
    size, (low, high) = call["voxel_size"], call["coors_range"].reshape(2, -1)
    places = ((call["points"][:, : call["NDim"]] - low) / size).floor()
    inside = ((places >= 0) & (places < ((high - low) / size).round())).all(-1, keepdim=True)
    return torch.where(inside, places, -1).flip(-1).int()


@reference_for("diopiDynamicVoxelizeMmcv")
def dynamic_voxelize(call: "ReferenceCall") -> Outputs:
    return {"coors": _voxel_of_points(call)}


@reference_for("diopiHardVoxelizeMmcv")
def hard_voxelize(call: "ReferenceCall") -> Outputs:
    """Voxels in the order of their first points, which stand in their own; zeros where there are none."""
    points, most = call["points"], call["max_points"]
    held: dict[tuple[int, ...], list[torch.Tensor]] = {}
    for point, voxel in zip(points, map(tuple, _voxel_of_points(call).tolist()), strict=True):
        if voxel[0] >= 0 and (voxel in held or len(held) < call["max_voxels"]):
            held.setdefault(voxel, []).append(point)
    voxels = points.new_zeros(call["max_voxels"], most, points.shape[1])
    coors = torch.zeros(call["max_voxels"], call["NDim"], dtype=torch.int32)
    counts = torch.zeros(call["max_voxels"], dtype=torch.int32)
    for i, (voxel, members) in enumerate(held.items()):
        kept = members[:most]
        voxels[i, : len(kept)], coors[i], counts[i] = torch.stack(kept), torch.tensor(voxel), len(kept)
    return {"voxels": voxels, "coors": coors, "num_points_per_voxel": counts, "voxel_num": torch.tensor(len(held))}


@reference_for("diopiDynamicPointToVoxelMmcv")
def dynamic_point_to_voxel(call: "ReferenceCall") -> Outputs:
    coors = call["coors"]
    rows = torch.full((len(coors),), -1, dtype=torch.int32)
    inside = (coors >= 0).all(-1)
    voxels, rows_inside, counts = coors[inside].unique(dim=0, return_inverse=True, return_counts=True)
    rows[inside] = rows_inside.int()
    reduced = call["feats"].new_zeros(len(voxels), call["feats"].shape[1])
    for v in range(len(voxels)):
        reduced[v] = _reduced(call["feats"][rows == v], call["reduce_type"])
    return {"outlist": [reduced, voxels.int(), rows, counts.int()]}


def _reduced(members: torch.Tensor, how: int) -> torch.Tensor:
    """[points, features] to [features]."""
    if how == _MAX:
        return members.amax(0)
    total = members.sum(0)
    return total / len(members) if how == _MEAN else total


@reference_for("diopiDynamicPointToVoxelBackwardMmcv")
def dynamic_point_to_voxel_backward(call: "ReferenceCall") -> Outputs:
    feats, grads, reduced = call["feats"], call["grad_reduced_feats"], call["reduced_feats"]
    found = torch.zeros_like(feats)
    rows = call["coors_idx"].tolist()
    for v, count in enumerate(call["reduce_count"].tolist()):
        members = torch.tensor([p for p, row in enumerate(rows) if row == v])
        if call["reduce_type"] == _MAX:
            first = (feats[members] == reduced[v]).int().argmax(0)
            found[members[first], torch.arange(feats.shape[1])] = grads[v]
        else:
            found[members] = grads[v] / (count if call["reduce_type"] == _MEAN else 1)
    return {"grad_feats": found}
