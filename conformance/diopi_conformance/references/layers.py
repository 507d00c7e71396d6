"""Matrix products, convolution, pooling and normalization as PyTorch's functional layer computes them."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for
from diopi_conformance.values.elements import rounded

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiMatmul")
def matmul(call: "ReferenceCall") -> Outputs:
    return {"out": torch.matmul(call["input"], call["other"])}


@reference_for("diopiProd")
def prod(call: "ReferenceCall") -> Outputs:
    """In the output's dtype, to which the factors are converted first."""
    dim, dtype, factors = call.get("dim"), call.output_dtype("out"), call["input"]
    if dtype.is_floating_point:
        factors = torch.from_numpy(rounded(factors.numpy(), call.dtypes["out"]))
    return {"out": torch.prod(factors, dtype=dtype) if dim is None else torch.prod(factors, dim, dtype=dtype)}


@reference_for("diopiSpMM")
def sp_mm(call: "ReferenceCall") -> Outputs:
    """Cases have dense matrices, the only ones of the test runtime."""
    return {"out": torch.matmul(call["input"], call["mat2"])}


@reference_for("diopiLinear")
def linear(call: "ReferenceCall") -> Outputs:
    return {"out": torch.nn.functional.linear(call["input"], call["weight"], call.get("bias"))}


@reference_for("diopiConvolution2d")
def convolution2d(call: "ReferenceCall") -> Outputs:
    out = torch.nn.functional.conv2d(
        call["input"],
        call["weight"],
        call.get("bias"),
        call["stride"],
        call["padding"],
        call["dilation"],
        call["groups"],
    )
    return {"out": out}


@reference_for("diopiMaxPool2d")
def max_pool2d(call: "ReferenceCall") -> Outputs:
    out = torch.nn.functional.max_pool2d(
        call["input"],
        call["kernel_size"],
        call["stride"] or None,
        call["padding"],
        call["dilation"],
        call["ceil_mode"],
    )
    return {"out": out}


@reference_for("diopiRMSNorm")
def rms_norm(call: "ReferenceCall") -> Outputs:
    source, shape = call["input"], call["normalized_shape"]
    dims = list(range(source.dim() - len(shape), source.dim()))
    inverse = torch.rsqrt(source.square().mean(dims, keepdim=True) + call["eps"])
    out = source * inverse
    if call.get("weight") is not None:
        out = out * call["weight"]
    if call.get("bias") is not None:
        out = out + call["bias"]
    return {"out": out, "inv_rms": inverse}


@reference_for("diopiRotaryEmbedding")
def rotary_embedding(call: "ReferenceCall") -> Outputs:
    """Turns pairs of features by the angles in `cos` and `sin`; halves are pairs, or neighbours if interleaved."""
    source, cos = call["x"], call["cos"]
    sin = -call["sin"] if call["conj"] else call["sin"]
    if call["interleaved"]:
        first, second = source[..., 0::2], source[..., 1::2]
    else:
        first, second = source.chunk(2, dim=-1)
    turned = (first * cos - second * sin, first * sin + second * cos)
    out = torch.stack(turned, dim=-1).flatten(-2) if call["interleaved"] else torch.cat(turned, dim=-1)
    return {"out": out}
