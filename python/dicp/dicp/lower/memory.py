"""Operators of memory: views, conversions, copies, constants, counts and concatenations."""

from typing import Any

import sympy
import torch
from torch import fx
from torch.utils._sympy.functions import FloorDiv

from dicp.dims import Float32, dim
from dicp.lower.arguments import named_arguments
from dicp.lower.state import State, computes, view_over
from dicp.program import Dim, Index, Scalar, View

_ALIASES = {"aten._unsafe_view.default", "aten.alias.default", "aten.detach.default", "aten.lift_fresh.default"}
_COPIES = {
    "aten._to_copy.default",
    "aten.clone.default",
    "aten.lift_fresh_copy.default",
    "prims.convert_element_type.default",
}
# Where the number stands that fills the tensor.
_FILLS = {
    "aten.full.default": 1,
    "aten.full_like.default": 1,
    "aten.new_full.default": 2,
    "aten.scalar_tensor.default": 0,
}
_CONSTANT_FILLS = {
    "aten.zeros.default": 0,
    "aten.zeros_like.default": 0,
    "aten.new_zeros.default": 0,
    "aten.ones.default": 1,
    "aten.ones_like.default": 1,
    "aten.new_ones.default": 1,
}
_EMPTIES = {
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.new_empty.default",
    "aten.empty_strided.default",
    "aten.new_empty_strided.default",
}

# Which view of the result is written over; its arguments are the operator's without `src`.
_SCATTERS = {
    "aten.select_scatter.default": torch.ops.aten.select.int,
    "aten.slice_scatter.default": torch.ops.aten.slice.Tensor,
}


def is_view(target: torch._ops.OpOverload) -> bool:
    """Whether the results share the memory of an argument."""
    if str(target) in _ALIASES:
        return True
    returns = target._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def viewed(state: State, node: fx.Node, value: Any) -> Any:
    """The results of a view over the root of what it is taken of."""
    source = next(arg for arg in node.args if isinstance(arg, fx.Node))
    base, fake = state.values[source], source.meta["val"]
    first = base.offset - dim(fake.storage_offset())  # of the storage, in elements of the base

    def over(item: torch.Tensor) -> View:
        before: Dim = first
        if item.element_size() != fake.element_size():
            before = FloorDiv(first * fake.element_size(), item.element_size())
        return view_over(base.root, item, dim(before + dim(item.storage_offset())))

    return [over(item) for item in value] if isinstance(value, list | tuple) else over(value)


def is_conversion(node: fx.Node) -> bool:
    """Whether the node copies a tensor, maybe to another dtype or device."""
    return str(node.target) in _COPIES


def is_copy_of_elements(node: fx.Node) -> bool:
    """Whether a loop makes the copy, in whatever orders both tensors have."""
    given = [node.meta.get("val"), *(operand.meta.get("val") for operand in node.all_input_nodes)]
    return is_conversion(node) and all(isinstance(t, torch.Tensor) and computes(t) for t in given)


def converted(state: State, node: fx.Node, value: torch.Tensor) -> sympy.Expr | None:
    """A number of the host in another dtype; None for any other operator."""
    source = state.values[node.args[0]] if is_conversion(node) else None  # type: ignore[index]
    if not isinstance(source, sympy.Expr):
        return None
    return Float32(source) if value.dtype == torch.float32 else source


def copied(state: State, node: fx.Node) -> View | None:
    """`copy_` between tensors that kernels have types for."""
    target, source = (state.values[arg] for arg in node.args[:2])  # type: ignore[index]
    if not computes(target) or (isinstance(source, View) and not computes(source)):
        return None
    operand = source if isinstance(source, View) else Scalar(value=source)
    state.kernel(node, "copy", (operand,), target, target.dtype)
    return target  # type: ignore[no-any-return]


def memory_kernel(state: State, node: fx.Node, name: str, value: Any) -> View | None:
    """The result of an operator of memory; None for any other operator."""
    if not isinstance(value, torch.Tensor):
        return None
    if name in _EMPTIES:
        return state.new(value)
    if not computes(value):
        return None
    if is_conversion(node):
        source = state.values[node.args[0]]  # type: ignore[index]
        if not isinstance(source, View):
            return state.stored(node, "copy", (Scalar(value=source),), value)
        return state.stored(node, "copy", (source,), value) if computes(source) else None
    if name == "aten.copy.default":
        source = state.values[node.args[1]]  # type: ignore[index]
        return state.stored(node, "copy", (source,), value) if computes(source) else None
    if name in _FILLS:
        number = state.scalar(node.args[_FILLS[name]])
        return None if number is None else state.stored(node, "copy", (number,), value)
    if name in _CONSTANT_FILLS:
        return state.stored(node, "copy", (Scalar(value=_CONSTANT_FILLS[name]),), value)
    if name == "aten.cat.default":
        return _joined(state, node, value)
    if name == "aten.stack.default":
        return _stacked(state, node, value)
    if name == "aten.constant_pad_nd.default":
        return _padded(state, node, value)
    if name in _SCATTERS:
        return _written_over(state, node, value)
    if name.startswith("aten.arange.") and value.dim() == 1:
        return _counted(state, node, value)
    return None


def _counted(state: State, node: fx.Node, value: torch.Tensor) -> View | None:
    given = [state.scalar(arg) for arg in node.args]
    start = given[0] if len(given) > 1 else Scalar(value=0)
    step = given[2] if len(given) > 2 else Scalar(value=1)
    if start is None or step is None:
        return None
    return state.stored(node, "arange", (start, step, Index()), value)


def _joined(state: State, node: fx.Node, value: torch.Tensor) -> View | None:
    """Each part of a concatenation is stored where it belongs, by the loop that computes it where that can be."""
    parts = [state.values[part] for part in node.args[0]]  # type: ignore[union-attr, index]
    if any(not computes(part) or len(part.sizes) != value.dim() for part in parts):
        return None
    along = named_arguments(node)["dim"] % value.dim()
    target = state.new(value)
    begin: Dim = 0
    for part in parts:
        sizes = tuple(part.sizes[d] if d == along else size for d, size in enumerate(target.sizes))
        _store_part(state, node, part, target, sizes, begin * target.strides[along])
        begin = begin + part.sizes[along]
    return target


def _stacked(state: State, node: fx.Node, value: torch.Tensor) -> View | None:
    """As a concatenation, along a dimension that the parts do not have."""
    parts = [state.values[part] for part in node.args[0]]  # type: ignore[union-attr, index]
    if not all(computes(part) for part in parts):
        return None
    along = named_arguments(node)["dim"] % value.dim()
    target = state.new(value)
    sizes = tuple(1 if d == along else size for d, size in enumerate(target.sizes))
    for index, part in enumerate(parts):
        whole = View(
            root=part.root,
            dtype=part.dtype,
            sizes=sizes,
            strides=(*part.strides[:along], 0, *part.strides[along:]),
            offset=part.offset,
        )
        _store_part(state, node, whole, target, sizes, index * target.strides[along])
    return target


def _padded(state: State, node: fx.Node, value: torch.Tensor) -> View | None:
    """A tensor of one number, and in it what is padded; where padding cuts off, the eager operator does it."""
    source, pads = state.values[node.args[0]], list(node.args[1])  # type: ignore[index, arg-type]
    number = state.scalar(named_arguments(node)["value"])
    if number is None or not computes(source) or not all(isinstance(pad, int) and pad >= 0 for pad in pads):
        return None
    target = state.stored(node, "copy", (number,), value)
    rank = len(source.sizes)
    offset: Dim = 0
    for index in range(len(pads) // 2):  # from the last dimension on
        offset = offset + pads[2 * index] * target.strides[rank - 1 - index]
    _store_part(state, node, source, target, source.sizes, offset)
    return target


def _written_over(state: State, node: fx.Node, value: torch.Tensor) -> View | None:
    """A copy of a tensor, and over a slice of it a copy of another; both go where the slice's own memory takes them."""
    base, part = (state.values[arg] for arg in node.args[:2])  # type: ignore[index]
    if not computes(base) or not computes(part):
        return None
    target = state.stored(node, "copy", (base,), value)
    where = fx.node.map_arg(list(named_arguments(node).values())[2:], lambda number: number.meta["val"])
    with value.fake_mode:  # type: ignore[attr-defined]
        place = _SCATTERS[str(node.target)](value, *where)
    offset = dim(place.storage_offset()) - dim(value.storage_offset())
    state.kernel(node, "copy", (part,), view_over(target.root, place, offset), target.dtype)
    return target


def _store_part(state: State, node: fx.Node, part: View, target: View, sizes: tuple[Dim, ...], offset: Dim) -> None:
    place = View(root=target.root, dtype=target.dtype, sizes=sizes, strides=target.strides, offset=offset)
    state.kernel(node, "copy", (part,), place, target.dtype)
