"""Nodes that are only another name of a value: who reads them reads the value itself, whose readers are then known."""

import torch
from torch import fx

ALIASES = (torch.ops.aten.detach.default, torch.ops.aten.alias.default)


def without_aliases(module: fx.GraphModule, visible: int | None) -> None:
    """Removes them, but for those that the caller gets: of the first `visible` outputs, all where it is None.

    An argument that is saved stays a view of it, which is not the argument.
    """
    output = module.graph.output_node()
    kept = set(output.args[0][:visible])  # type: ignore[index, arg-type]
    for node in [node for node in module.graph.nodes if node.target in ALIASES]:
        source = node.args[0]
        saved = visible is not None and source.op == "call_function" and kept.isdisjoint((node, source))
        for user in list(node.users):
            if user is not output or saved:
                user.replace_input_with(node, source)
        if not node.users:
            module.graph.erase_node(node)
    module.recompile()
