"""Functions that move elements without changing them, or write constants."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import MEMORY_FORMATS, SCRATCH, reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiCopyInp")
def copy(call: "ReferenceCall") -> Outputs:
    return {"dest": _converted(call["src"], call.output_dtype("dest")).expand_as(call["dest"])}


@reference_for("diopiCastDtype")
def cast(call: "ReferenceCall") -> Outputs:
    return {"out": _converted(call["input"], call.output_dtype("out"))}


def _converted(source: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The real part of complex numbers for a type that has no other one; what is not zero is true."""
    real = source.is_complex() and not dtype.is_complex and dtype != torch.bool
    return (source.real if real else source).to(dtype)


@reference_for("diopiContiguous")
def contiguous(call: "ReferenceCall") -> Outputs:
    """A format that does not fit the rank, as for images of other than four dimensions, leaves the order as it is."""
    return {"out": call["input"].clone(memory_format=MEMORY_FORMATS[call["memoryFormat"]])}


@reference_for("diopiStack")
def stack(call: "ReferenceCall") -> Outputs:
    return {"out": torch.stack(list(call["tensors"]), call["dim"])}


@reference_for("diopiZeros")
def zeros(call: "ReferenceCall") -> Outputs:
    return {"out": torch.zeros(call["size"], dtype=call.output_dtype("out"))}


@reference_for("diopiOnes")
def ones(call: "ReferenceCall") -> Outputs:
    return {"out": torch.ones(call["size"], dtype=call.output_dtype("out"))}


@reference_for("diopiExpand")
def expand(call: "ReferenceCall") -> Outputs:
    """To the shape that the row gives for the output."""
    return {"out": call["input"].expand(call.case.values.get("out", call["input"].shape))}


@reference_for("diopiPermute")
def permute(call: "ReferenceCall") -> Outputs:
    return {"out": call["input"].permute(call["dims"])}


@reference_for("diopiTranspose")
def transpose(call: "ReferenceCall") -> Outputs:
    return {"out": call["input"].transpose(call["dim0"], call["dim1"])}


@reference_for("diopiUnfold")
def unfold(call: "ReferenceCall") -> Outputs:
    return {"out": call["input"].unfold(call["dim"], call["size"], call["step"])}


@reference_for("diopiSplitWithSizes")
def split_with_sizes(call: "ReferenceCall") -> Outputs:
    return {"outs": list(torch.split(call["input"], call["splitSizes"], call["dim"]))}


@reference_for("diopiPad")
def pad(call: "ReferenceCall") -> Outputs:
    """Other modes than "constant" by the places that elements come from: PyTorch pads no integers by them."""
    source, mode = call["input"], call["mode"]
    if mode == "constant":
        return {"out": torch.nn.functional.pad(source, call["pad"], mode, call.get("value", 0))}
    places = torch.arange(source.numel(), dtype=torch.float64).reshape(source.shape)
    return {"out": source.take(torch.nn.functional.pad(places, call["pad"], mode).to(torch.int64))}


@reference_for("diopiMeshGrid")
def mesh_grid(call: "ReferenceCall") -> Outputs:
    return {"outs": list(torch.meshgrid(call["inputs"], indexing="ij"))}


@reference_for("diopiReal")
def real(call: "ReferenceCall") -> Outputs:
    return {"out": torch.real(call["input"])}


@reference_for("diopiImag")
def imag(call: "ReferenceCall") -> Outputs:
    return {"out": torch.imag(call["input"])}


@reference_for("diopiNativeMemoryFormatCast")
def native_memory_format_cast(call: "ReferenceCall") -> Outputs:
    return {"out": call["in"]}


@reference_for("diopiGetNativeMemoryFormat")
def get_native_memory_format(call: "ReferenceCall") -> Outputs:
    """The number is the vendor's: anything, as long as it is written."""
    return {"format": SCRATCH}
