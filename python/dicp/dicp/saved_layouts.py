"""What a forward graph saves may lie otherwise than AOTAutograd traced it: one graph says so, the other adapts."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from dicp.orders import Readers, follow_turned, is_part, turns


def saved_from(module: fx.GraphModule) -> int | None:
    """How many outputs of a forward graph go to the caller; the rest is saved. None where all do, or sizes vary."""
    context = torch._guards.TracingContext.try_get()
    if context is None or context.output_strides is None or context.fw_metadata is None:
        return None
    if any(_varies(node.meta.get("val")) for node in module.graph.nodes):
        return None
    visible: int = context.fw_metadata.num_forward_returns
    return visible


def tell_strides(graph: fx.Graph) -> None:
    """Tells AOTAutograd how the outputs of a forward graph lie, for the backward graph."""
    context = torch._guards.TracingContext.try_get()
    assert context is not None and context.output_strides is not None
    (output,) = (node for node in graph.nodes if node.op == "output")
    for node in output.args[0]:
        value = node.meta.get("val") if isinstance(node, fx.Node) else None
        context.output_strides.append(tuple(value.stride()) if isinstance(value, torch.Tensor) else None)


def adapt(module: fx.GraphModule, given: Sequence[Any], readers: Readers) -> None:
    """Where arguments lie otherwise than the graph was traced with, who needs them as traced reads a copy."""
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    changed = False
    for node, tensor in zip(placeholders, given, strict=False):
        traced = node.meta.get("val")
        if not isinstance(tensor, torch.Tensor) or not isinstance(traced, torch.Tensor) or _varies(traced):
            continue
        if tensor.stride() == traced.stride():
            continue
        changed = True
        node.meta["val"] = tensor
        with module.graph.inserting_after(placeholders[-1]):
            copy = module.graph.call_function(
                torch.ops.aten.clone.default, (node,), {"memory_format": torch.contiguous_format}
            )
        copy.meta["val"] = traced
        follow_turned(node)
        for user in [user for user in node.users if user is not copy and not _bears(user, tensor, readers)]:
            user.replace_input_with(node, copy)
        if not copy.users:
            module.graph.erase_node(copy)
    if changed:
        module.recompile()


def _bears(user: fx.Node, tensor: torch.Tensor, readers: Readers) -> bool:
    """Whether a node reads a tensor as it lies; all functions take contiguous ones."""
    turned = turns(user) and all(reader.op != "output" for reader in user.users)
    computes = user.op == "call_function" and not is_part(user)
    return readers.bear_any(user) or turned or (computes and tensor.is_contiguous())


def _varies(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value._has_symbolic_sizes_strides
