"""Backward functions that the schemas list as operators of their own, and what they are the gradients of."""

import torch

from tests.conformance.forwards import Relation


def _pair(forward: str, backward: str, grads: dict[str, str], **more: object) -> Relation:
    return Relation(forward=(forward,), backward=(backward,), grads=grads, **more)  # type: ignore[arg-type]


def _logits(softmax: torch.Tensor) -> torch.Tensor:
    return softmax.log()


def _softmax(logits: torch.Tensor) -> torch.Tensor:
    return logits.softmax(-1)


def _log_softmax(logits: torch.Tensor) -> torch.Tensor:
    return logits.log_softmax(-1)


RELATIONS = (
    _pair(
        "diopiRoiawarePool3dMmcv",
        "diopiRoiawarePool3dBackwardMmcv",
        {"grad_in": "pts_feature"},
        grad_outputs={"grad_out": "pooled_features"},
        made={
            "grad_in": lambda v: torch.zeros_like(v["pts_feature"]),
            "argmax": lambda v: v.get("argmax", torch.zeros(v["pooled_features"].shape)),  # of means there is none
        },
    ),
    _pair(
        "diopiDeformConvMmcv",
        "diopiDeformConvBackwardInputMmcv",
        {"gradInput": "input", "gradOffset": "offset"},
        grad_outputs={"gradOutput": "output"},
    ),
    _pair(
        "diopiDeformConvMmcv",
        "diopiDeformConvBackwardParametersMmcv",
        {"gradWeight": "weight"},
        grad_outputs={"gradOutput": "output"},
        made={"scale": lambda v: 1.0},
    ),
    _pair(
        "diopiRoiAlign",
        "diopiRoiAlignBackward",
        {"out": "input"},
        grad_outputs={"grad": "out"},
        made={
            "batch_size": lambda v: v["input"].shape[0],
            "channels": lambda v: v["input"].shape[1],
            "height": lambda v: v["input"].shape[2],
            "width": lambda v: v["input"].shape[3],
        },
    ),
    _pair(
        "diopiCdist",
        "diopiCdistBackward",
        {"grad_input": "input1"},
        grad_outputs={"grad_output": "out"},
        keeps={"cdist": "out"},
    ),
    _pair(  # without the row and the scale that training leaves out of the gradient
        "diopiEmbedding",
        "diopiEmbeddingBackward",
        {"out": "weight"},
        grad_outputs={"grad": "out"},
        made={
            "num_weights": lambda v: v["weight"].shape[0],
            "padding_idx": lambda v: -1,
            "scale_grad_byfreq": lambda v: False,
        },
    ),
    _pair(
        "diopiCarafeMmcv",
        "diopiCarafeBackwardMmcv",
        {"bottom_grad": "features", "mask_grad": "masks"},
        grad_outputs={"top_grad": "output"},
    ),
    _pair(
        "diopiCarafeNaiveMmcv",
        "diopiCarafeNaiveBackwardMmcv",
        {"bottom_grad": "features", "mask_grad": "masks"},
        grad_outputs={"top_grad": "output"},
    ),
    _pair(
        "diopiActiveRotatedFilterMmcv",
        "diopiActiveRotatedFilterBackwardMmcv",
        {"grad_in": "input"},
        grad_outputs={"grad_out": "output"},
    ),
    _pair(
        "diopiRotatedFeatureAlignMmcv",
        "diopiRotatedFeatureAlignBackwardMmcv",
        {"bottom_grad": "features"},
        grad_outputs={"top_grad": "output"},
    ),
    _pair(
        "diopiIndex",
        "diopiIndexBackward",
        {"grad_input": "input"},
        grad_outputs={"grad_output": "out"},
        made={"zeros_like_input": lambda v: torch.zeros_like(v["input"])},
    ),
    _pair(
        "diopiSigmoidFocalLoss",
        "diopiSigmoidFocalLossBackward",
        {"grad_input": "inputs"},
        grad_outputs={"grad_output": "out"},
        keeps={"input": "inputs", "target": "targets"},
    ),
    _pair(  # by what the softmax is taken of
        "diopiCTCLoss",
        "diopiCTCLossBackward",
        {"grad_input": "log_probs"},
        grad_outputs={"grad_output": "out"},
        through={"log_probs": (_log_softmax, _log_softmax)},
    ),
    _pair("diopiSigmoidFocalLossMmcv", "diopiSigmoidFocalLossBackwardMmcv", {"grad_input": "input"}),
    _pair(
        "diopiSoftmaxFocalLossMmcv",
        "diopiSoftmaxFocalLossBackwardMmcv",
        {"grad_input": "softmax"},
        through={"softmax": (_logits, _softmax)},
    ),
    _pair(
        "diopiRoiAlignRotatedMmcv",
        "diopiRoiAlignRotatedBackwardMmcv",
        {"bottom_grad": "input"},
        grad_outputs={"top_grad": "output"},
        made={"bottom_grad": lambda v: torch.zeros_like(v["input"])},
    ),
    _pair(
        "diopiRiroiAlignRotatedMmcv",
        "diopiRiroiAlignRotatedBackwardMmcv",
        {"bottom_grad": "features"},
        grad_outputs={"top_grad": "output"},
        made={"bottom_grad": lambda v: torch.zeros_like(v["features"])},
    ),
    _pair(
        "diopiPrroiPoolMmcv",
        "diopiPrroiPoolCoorBackwardMmcv",
        {"grad_rois": "rois"},
        grad_outputs={"grad_output": "output"},
        columns=1,  # the image that a region lies in
    ),
    _pair(
        "diopiSort",
        "diopiSortBackward",
        {"grad_input": "input"},
        grad_outputs={"grad_output": "values"},
        made={"sizes": lambda v: list(v["input"].shape), "keepdim": lambda v: True},
    ),
    _pair(
        "diopiDynamicPointToVoxelMmcv",
        "diopiDynamicPointToVoxelBackwardMmcv",
        {"grad_feats": "feats"},
        grad_outputs={"grad_reduced_feats": "outlist[0]"},
        keeps={"reduced_feats": "outlist[0]", "coors_idx": "outlist[2]", "reduce_count": "outlist[3]"},
    ),
    _pair(
        "diopiIndiceMaxpoolMmcv",
        "diopiIndiceMaxpoolBackwardMmcv",
        {"out": "features"},
        grad_outputs={"outGrad": "out"},
        keeps={"outFeatures": "out"},
    ),
    _pair(
        "diopiIndiceConvMmcv",
        "diopiIndiceConvBackwardMmcv",
        {"outlist[0]": "features", "outlist[1]": "filters"},
        grad_outputs={"outGrad": "out"},
    ),
    Relation(
        forward=("diopiBatchNormStats", "diopiBatchNormElemt"),
        backward=("diopiBatchNormBackwardReduce", "diopiBatchNormBackwardElemt"),
        grads={"grad_input": "input", "grad_weight": "weight", "grad_bias": "bias"},
        grad_outputs={"grad_out": "out"},
        made={
            **dict.fromkeys(("input_g", "weight_g", "bias_g"), lambda v: True),
            "count": lambda v: torch.tensor([v["input"].numel() // v["input"].shape[1]]),
        },
    ),
    Relation(
        forward=("diopiSyncBnMeanMmcv", "diopiSyncBnVarMmcv", "diopiSyncBnOutputMmcv"),
        backward=("diopiSyncBnBackwardParamMmcv", "diopiSyncBnBackwardDataMmcv"),
        grads={"grad_input": "input", "grad_weight": "weight", "grad_bias": "bias"},
        grad_outputs={"grad_output": "output"},
    ),
)
