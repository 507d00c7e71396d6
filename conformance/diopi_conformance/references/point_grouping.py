"""Features of the points that neighbour searches name; clouds are [batch, channels, points]."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiGatherPointsMmcv", "diopiGroupPointsMmcv")
def group_points(call: "ReferenceCall") -> Outputs:
    clouds = zip(call["points"], call["idx"].long(), strict=True)
    return {"out": torch.stack([cloud[:, places] for cloud, places in clouds])}


@reference_for("diopiStackGroupPointsMmcv")
def stack_group_points(call: "ReferenceCall") -> Outputs:
    """Clouds and groups lie one behind the other; positions count from the first point of their cloud."""
    clouds = call["features_tensor"].split(call["features_batch_cnt_tensor"].tolist())
    groups = call["idx_tensor"].long().split(call["idx_batch_cnt_tensor"].tolist())
    found = [cloud[places].transpose(1, 2) for cloud, places in zip(clouds, groups, strict=True)]
    return {"out_tensor": torch.cat(found)}


@reference_for("diopiThreeInterpolateMmcv")
def three_interpolate(call: "ReferenceCall") -> Outputs:
    clouds = zip(call["points"], call["idx"].long(), call["weight"], strict=True)
    return {"out": torch.stack([(cloud[:, places] * weight).sum(-1) for cloud, places, weight in clouds])}


@reference_for("diopiAssignScoreWithkMmcv")
def assign_score_withk(call: "ReferenceCall") -> Outputs:
    """Sums over the weight matrices only: that is all that `aggregate` 0 asks for."""
    found = []
    for points, centers, scores, places in zip(
        *(call[n] for n in ("points", "centers", "scores", "knn_idx")), strict=True
    ):
        relative = points[places] - centers[places[:, :1]]  # [centres, neighbours, matrices, features]
        found.append((relative * scores[..., None]).sum(2).movedim(-1, 0))
    return {"output": torch.stack(found)}
