"""How a tensor lies in its storage: sizes, strides, offset, and which stored elements belong to it."""

from dataclasses import dataclass
from math import prod

import numpy as np

from diopi_conformance.elements import Array

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

    `order` is the memory order of tensors with as many dimensions as it has letters, the channel second in `sizes`.
    ex) "nhwc".
    """
    if order and len(sizes) == len(order):
        return _permuted(view, sizes, (0, *range(2, len(sizes)), 1), writable)
    match view:
        case "strided" if sizes:
            return _strided(sizes)
        case "offset":
            return Layout(sizes=sizes, strides=row_major(sizes), offset=3, elements=prod(sizes) + 5)
        case "expanded" if not writable and expanded_dim(sizes) is not None:
            return _expanded(sizes)
        case "transposed" if len([n for n in sizes if n > 1]) >= 2:
            return _transposed(sizes)
        case _:
            return Layout(sizes=sizes, strides=row_major(sizes), offset=0, elements=prod(sizes))


def _permuted(view: str, sizes: Sizes, order: Sizes, writable: bool) -> Layout:
    """`view` of a tensor whose dimensions lie in memory in `order`, the outermost first."""
    inner = layout(view, tuple(sizes[dim] for dim in order), writable)
    steps = dict(zip(order, inner.strides, strict=True))
    strides = tuple(steps[dim] for dim in range(len(sizes)))
    return Layout(sizes=sizes, strides=strides, offset=inner.offset, elements=inner.elements)


def spread(place: Layout, factor: int) -> Layout:
    """The same tensor with all elements `factor` times as far apart, which no tensor beside it need share."""
    strides = tuple(step * factor for step in place.strides)
    return Layout(sizes=place.sizes, strides=strides, offset=place.offset * factor, elements=place.elements * factor)


def expanded_dim(sizes: Sizes) -> int | None:
    """Which dimension an expanded tensor repeats: the first that is longer than 1."""
    return next((dim for dim, size in enumerate(sizes) if size > 1), None)


def _strided(sizes: Sizes) -> Layout:
    room = (*sizes[:-1], 2 * sizes[-1])
    strides = (*row_major(room)[:-1], 2)
    return Layout(sizes=sizes, strides=strides, offset=0, elements=prod(room))


def _expanded(sizes: Sizes) -> Layout:
    dim = expanded_dim(sizes)
    assert dim is not None
    kept = tuple(1 if d == dim else size for d, size in enumerate(sizes))
    strides = tuple(0 if d == dim else step for d, step in enumerate(row_major(kept)))
    return Layout(sizes=sizes, strides=strides, offset=0, elements=prod(kept))


def _transposed(sizes: Sizes) -> Layout:
    first, second = [dim for dim, size in enumerate(sizes) if size > 1][-2:]
    order = list(range(len(sizes)))
    order[first], order[second] = order[second], order[first]
    memory = row_major(tuple(sizes[dim] for dim in order))
    strides = [0] * len(sizes)
    for dim, step in zip(order, memory, strict=True):
        strides[dim] = step
    return Layout(sizes=sizes, strides=tuple(strides), offset=0, elements=prod(sizes))
