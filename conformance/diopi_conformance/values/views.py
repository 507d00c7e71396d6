"""How a tensor lies in its storage: sizes, strides, offset, and which stored elements belong to it."""

from dataclasses import dataclass
from math import prod

import numpy as np

from diopi_conformance.values.elements import Array
from diopigen.vocabulary.layouts import rank_of

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A view of a storage; everything counts elements."""

    sizes: Sizes
    strides: Sizes
    offset: int
    elements: int  # of the whole storage

    @property
    def plain(self) -> bool:
        """Whether the storage holds the tensor in order and nothing else."""
        return self.strides == row_major(self.sizes) and self.offset == 0 and self.elements == prod(self.sizes)

    def positions(self) -> Array:
        """The storage index of each element of the tensor, in the tensor's shape."""
        index = np.full(self.sizes, self.offset, dtype=np.int64)
        for dim, (size, stride) in enumerate(zip(self.sizes, self.strides, strict=True)):
            steps = np.arange(size, dtype=np.int64) * stride
            index += steps.reshape((-1,) + (1,) * (len(self.sizes) - dim - 1))
        return index


def row_major(sizes: Sizes) -> Sizes:
    """The strides of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(1, size)
    return tuple(reversed(strides))


def layout(view: str, sizes: Sizes, writable: bool, order: str = "") -> Layout:
    """The layout that `view` gives a tensor; a tensor that is written never overlaps itself.

    `order` is the memory order of tensors of its rank, the channel second in `sizes`.
    e.g. "nhwc".
    """
    dims = memory_dims(sizes, order)
    inner = _layout(view, tuple(sizes[dim] for dim in dims), writable)
    steps = dict(zip(dims, inner.strides, strict=True))
    strides = tuple(steps[dim] for dim in range(len(sizes)))
    return Layout(sizes=sizes, strides=strides, offset=inner.offset, elements=inner.elements)


def memory_dims(sizes: Sizes, order: str) -> Sizes:
    """The dimensions as they lie in memory, the outermost first."""
    if order and len(sizes) == rank_of(order):
        return (0, *range(2, len(sizes)), 1)
    return tuple(range(len(sizes)))


def own_sizes(view: str, sizes: Sizes, order: str = "") -> Sizes:
    """The sizes of the elements that a tensor that is only read has for itself; `shared` makes the tensor of them."""
    dims = memory_dims(sizes, order)
    kept = _kept(view, tuple(sizes[dim] for dim in dims))
    lengths = dict(zip(dims, kept, strict=True))
    return tuple(lengths[dim] for dim in range(len(sizes)))


def shared(view: str, values: Array, sizes: Sizes, order: str = "") -> Array:
    """`values`, of the sizes that `own_sizes` gives, where each element of the tensor finds them."""
    if values.shape == sizes:
        return values
    stored = np.transpose(values, memory_dims(sizes, order)).reshape(-1)
    return np.asarray(stored[layout(view, sizes, False, order).positions()])


def _layout(view: str, sizes: Sizes, writable: bool) -> Layout:
    match view:
        case "strided" if sizes:
            return _strided(sizes)
        case "offset":
            return Layout(sizes=sizes, strides=row_major(sizes), offset=3, elements=prod(sizes) + 5)
        case "transposed" if len(_long(sizes)) >= 2:
            return _transposed(sizes)
        case "expanded" | "overlapping" if not writable:
            kept = _kept(view, sizes)
            strides = tuple(_step(view, sizes, kept, dim) for dim in range(len(sizes)))
            return Layout(sizes=sizes, strides=strides, offset=0, elements=prod(kept))
        case _:
            return Layout(sizes=sizes, strides=row_major(sizes), offset=0, elements=prod(sizes))


def _kept(view: str, sizes: Sizes) -> Sizes:
    """The sizes of the elements that are stored: one for a repeated dimension, a line for two that overlap."""
    long = _long(sizes)
    if view == "expanded" and long:
        return tuple(1 if dim == long[0] else size for dim, size in enumerate(sizes))
    if view == "overlapping" and len(long) >= 2:
        first, second = long[-2:]
        line = sizes[first] + sizes[second] - 1
        return tuple({first: 1, second: line}.get(dim, size) for dim, size in enumerate(sizes))
    return sizes


def spread(place: Layout, factor: int) -> Layout:
    """The same tensor with all elements `factor` times as far apart, which no tensor beside it need share."""
    strides = tuple(step * factor for step in place.strides)
    return Layout(sizes=place.sizes, strides=strides, offset=place.offset * factor, elements=place.elements * factor)


def _step(view: str, sizes: Sizes, kept: Sizes, dim: int) -> int:
    if kept[dim] == sizes[dim] or (view == "overlapping" and dim == _long(sizes)[-1]):
        return row_major(kept)[dim]
    return row_major(kept)[_long(sizes)[-1]] if view == "overlapping" else 0


def _long(sizes: Sizes) -> tuple[int, ...]:
    """The dimensions that are longer than 1."""
    return tuple(dim for dim, size in enumerate(sizes) if size > 1)


def _strided(sizes: Sizes) -> Layout:
    room = (*sizes[:-1], 2 * sizes[-1])
    strides = (*row_major(room)[:-1], 2)
    return Layout(sizes=sizes, strides=strides, offset=0, elements=prod(room))


def _transposed(sizes: Sizes) -> Layout:
    first, second = _long(sizes)[-2:]
    order = list(range(len(sizes)))
    order[first], order[second] = order[second], order[first]
    memory = row_major(tuple(sizes[dim] for dim in order))
    strides = [0] * len(sizes)
    for dim, step in zip(order, memory, strict=True):
        strides[dim] = step
    return Layout(sizes=sizes, strides=tuple(strides), offset=0, elements=prod(sizes))
