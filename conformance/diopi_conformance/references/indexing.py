"""Functions that pick or place elements by position."""

from typing import TYPE_CHECKING, Any

import torch

from diopi_conformance.references.registry import reference_for

if TYPE_CHECKING:
    from diopi_conformance.expected.reference_call import ReferenceCall

Outputs = dict[str, Any]


@reference_for("diopiIndex")
def index(call: "ReferenceCall") -> Outputs:
    return {"out": torch.ops.aten.index.Tensor(call["input"], call["indices"])}


@reference_for("diopiIndexBackward")
def index_backward(call: "ReferenceCall") -> Outputs:
    added = torch.ops.aten.index_put(call["zeros_like_input"], call["indices"], call["grad_output"], True)
    return {"grad_input": added}


@reference_for("diopiIndexPut", "diopiIndexPutInp")
def index_put(call: "ReferenceCall") -> Outputs:
    placed = torch.ops.aten.index_put(call["input"], call["indices"], call["values"], call["accumulate"])
    return {call.function.written[0].name: placed}


@reference_for("diopiIndexFill", "diopiIndexFillInp", "diopiIndexFillScalar", "diopiIndexFillInpScalar")
def index_fill(call: "ReferenceCall") -> Outputs:
    filled = torch.index_fill(call["input"], call["dim"], call["index"], call["value"])
    return {call.function.written[0].name: filled}


@reference_for("diopiMaskedFill", "diopiMaskedFillInp", "diopiMaskedFillScalar", "diopiMaskedFillInpScalar")
def masked_fill(call: "ReferenceCall") -> Outputs:
    filled = torch.masked_fill(call["input"], call["mask"], call["value"])
    return {call.function.written[0].name: filled}


@reference_for("diopiMaskedSelect")
def masked_select(call: "ReferenceCall") -> Outputs:
    return {"out": torch.masked_select(call["input"], call["mask"])}


@reference_for("diopiNonzero")
def nonzero(call: "ReferenceCall") -> Outputs:
    return {"out": torch.nonzero(call["input"])}


@reference_for("diopiSelect")
def select(call: "ReferenceCall") -> Outputs:
    return {"out": call["input"].select(call["dim"], call["index"])}


@reference_for("diopiSlice")
def slice_(call: "ReferenceCall") -> Outputs:
    sliced = torch.ops.aten.slice(call["input"], call["dim"], call["start"], call["end"], call["step"])
    return {call.function.written[0].name: sliced}


@reference_for("diopiOneHot")
def one_hot(call: "ReferenceCall") -> Outputs:
    classes = -1 if call.get("num_classes") is None else call["num_classes"]
    return {"out": torch.nn.functional.one_hot(call["input"], classes)}


@reference_for("diopiArgsort")
def argsort(call: "ReferenceCall") -> Outputs:
    sorted_ = torch.sort(
        call["input"], dim=call.get("dim", -1), descending=call["descending"], stable=bool(call["stable"])
    )
    return {"out": sorted_.indices}


@reference_for("diopiSortBackward")
def sort_backward(call: "ReferenceCall") -> Outputs:
    """Each gradient goes back to where its value came from."""
    grads, positions = call["grad_output"], call["indices"]
    if not call["keepdim"] and grads.dim() < len(call["sizes"]):
        grads, positions = grads.unsqueeze(call["dim"]), positions.unsqueeze(call["dim"])
    empty = torch.zeros(call["sizes"], dtype=grads.dtype)
    return {"grad_input": empty.scatter_add(call["dim"], positions, grads) if grads.dim() else grads.clone()}


@reference_for("diopiUnique")
def unique(call: "ReferenceCall") -> Outputs:
    counted = call["return_counts"]
    found = torch.unique(call["input"], True, return_inverse=True, return_counts=counted, dim=call.get("dim"))
    return {"out": found[0], "indices": found[1], "counts": found[2] if counted else None}
