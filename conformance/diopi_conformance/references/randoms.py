"""Outputs of random functions: only their shapes are foreseen, their numbers are judged by distribution."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for(
    "diopiBernoulli",
    "diopiBernoulliInp",
    "diopiBernoulliScalar",
    "diopiDropout",
    "diopiDropoutInp",
    "diopiNormal",
    "diopiNormalInp",
    "diopiNormalScalarTensor",
    "diopiNormalTensor",
    "diopiNormalTensorScalar",
    "diopiRandomInp",
    "diopiUniformInp",
)
def like_its_tensors(call: "ReferenceCall") -> Outputs:
    """Every output has the common shape of the tensors given, or the one that the row gives for it."""
    tensors = [v for v in call.values.values() if isinstance(v, torch.Tensor)]
    shape = np.broadcast_shapes(*(tuple(t.shape) for t in tensors))
    return {
        p.name: torch.zeros(call.case.values.get(p.name, shape), dtype=call.output_dtype(p.name))
        for p in call.function.written
    }


@reference_for("diopiRandperm")
def randperm(call: "ReferenceCall") -> Outputs:
    return {"out": torch.zeros(call["n"], dtype=call.output_dtype("out"))}


@reference_for("diopiMultinomial")
def multinomial(call: "ReferenceCall") -> Outputs:
    return {"out": torch.zeros((*call["input"].shape[:-1], call["num_samples"]), dtype=torch.int64)}
