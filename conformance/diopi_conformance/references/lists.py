"""Elementwise operations on lists, each entry by itself."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


def _each(call: "ReferenceCall", formula: Callable[..., torch.Tensor], *lists: str) -> Outputs:
    return {"outs": [formula(*entries) for entries in zip(*(call[name] for name in ("inputs", *lists)), strict=True)]}


@reference_for("diopiForeachAddList")
def add_list(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y: x + call["alpha"] * y, "others")


@reference_for("diopiForeachMulList")
def mul_list(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y: x * y, "others")


@reference_for("diopiForeachDivList")
def div_list(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y: x / y, "others")


@reference_for("diopiForeachDiv")
def div(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x: x / call["other"])


@reference_for("diopiForeachSqrt")
def sqrt(call: "ReferenceCall") -> Outputs:
    return _each(call, torch.sqrt)


@reference_for("diopiForeachLerp")
def lerp(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y: x + call["weight"] * (y - x), "ends")


@reference_for("diopiForeachAddcmul")
def addcmul(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y, z: x + call["value"] * y * z, "tensors1", "tensors2")


@reference_for("diopiForeachAddcdiv")
def addcdiv(call: "ReferenceCall") -> Outputs:
    return _each(call, lambda x, y, z: x + call["value"] * y / z, "tensors1", "tensors2")
