"""The loop of a kernel: dimensions in the order of memory, neighbours joined where every operand lets them."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dicp.dims import all_same, contiguous_strides, same
from dicp.program import Dim, Kernel, Step, View, product
from dicp.rewrite import kernel_over


def collapsed(kernel: Kernel) -> Kernel:
    """The same kernel over as few dimensions as its operands allow, the fastest of the first result last."""
    if kernel.folds:
        return kernel
    views = _views(kernel)
    order = _memory_order(kernel.results[0][0])
    if kernel.counts:
        order = tuple(range(len(kernel.sizes)))  # elements are counted in the order of the sizes
    groups = _joined(views, kernel.sizes, order)
    sizes = tuple(product([kernel.sizes[d] for d in group]) for group in groups)
    return _changed(kernel, sizes, lambda view: tuple(view.strides[group[-1]] for group in groups))


def reshaped(kernel: Kernel, sizes: tuple[Dim, ...]) -> Kernel | None:
    """The kernel as a loop over more dimensions, into which each of its own is split; None where they do not fit.

    A dimension that is folded stays whole, and the last one.
    """
    runs = _split(kernel.sizes, sizes)
    if runs is None or (kernel.folds and runs[-1] != [len(sizes) - 1]):
        return None

    def strides(view: View) -> tuple[Dim, ...]:
        steps: list[Dim] = []
        for run, stride in zip(runs, view.strides, strict=True):
            steps += [step * stride for step in contiguous_strides([sizes[d] for d in run])]
        return (*steps, *(0 for _ in sizes[len(steps) :]))

    return _changed(kernel, sizes, strides)


def _split(sizes: Sequence[Dim], into: Sequence[Dim]) -> list[list[int]] | None:
    """For each size the neighbours in `into` whose product it is; those that are left have one element."""
    runs: list[list[int]] = []
    at = 0
    for size in sizes:
        run: list[int] = []
        while not same(product([into[d] for d in run]), size):
            if at == len(into):
                return None
            run.append(at)
            at += 1
        runs.append(run)
    return runs if all(same(size, 1) for size in into[at:]) else None


def common(one: Sequence[Dim], other: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """The fewest dimensions that both can be split into, e.g. (6, 5, 4) of (6, 20) and (30, 4)."""
    left, right = [size for size in one if size != 1], [size for size in other if size != 1]
    sizes: list[Dim] = []
    while left and right:  # from the last on, whose lengths are seldom symbols
        a, b = left.pop(), right.pop()
        if same(a, b):
            sizes.append(a)
        elif (rest := _quotient(a, b)) is not None:
            sizes.append(b)
            left.append(rest)
        elif (rest := _quotient(b, a)) is not None:
            sizes.append(a)
            right.append(rest)
        else:
            return None
    return None if left or right else tuple(reversed(sizes))


def _quotient(size: Dim, part: Dim) -> Dim | None:
    """How often `part` is in `size`; None where that is no whole number."""
    if isinstance(size, int):
        return size // part if isinstance(part, int) and part and size % part == 0 else None
    quotient = size / part
    return quotient if quotient.is_integer else None


def lifted(kernel: Kernel, sizes: tuple[Dim, ...]) -> Kernel | None:
    """A kernel over the rows of a loop as one over all of it, in which each row has one value."""
    rows = Kernel(sizes=sizes[:-1], results=[], names=[])
    if kernel.folds or kernel.counts:
        return None
    if not all_same(kernel.sizes, rows.sizes):
        other = reshaped(kernel, rows.sizes)
        if other is None:
            return None
        kernel = other
    return _changed(kernel, sizes, lambda view: (*view.strides, 0))


def spread(kernel: Kernel, sizes: tuple[Dim, ...], places: Sequence[int]) -> Kernel:
    """The kernel, whose dimensions are those of a loop at `places`, again for each element of the others."""

    def strides(view: View) -> tuple[Dim, ...]:
        own = dict(zip(places, view.strides, strict=True))
        return tuple(own.get(d, 0) for d in range(len(sizes)))

    return _changed(kernel, sizes, strides)


def turned(kernel: Kernel, own: View, like: View) -> Kernel | None:
    """The kernel with its dimensions in the order of another, where `like` is what `own` is here; else None."""
    if kernel.folds or kernel.counts or len(own.sizes) != len(like.sizes):
        return None
    order: list[int] = []
    for size, stride in zip(like.sizes, like.strides, strict=True):
        left = [d for d in range(len(own.sizes)) if d not in order]
        fits = [d for d in left if same(own.sizes[d], size) and same(own.strides[d], stride)]
        if not fits:
            return None
        order.append(fits[0])
    sizes = tuple(kernel.sizes[d] for d in order)
    return _changed(kernel, sizes, lambda view: tuple(view.strides[d] for d in order))


def row_fold(source: View, target: View, dims: Sequence[int], step: Callable[[View], Step], name: str) -> Kernel | None:
    """The kernel that folds `source` along `dims`; None where those are not one dense run of each row.

    `target` has the sizes of `source` with 1 in place of those of `dims`.
    """
    rank = len(source.sizes)
    columns = [d for d in range(rank) if d in dims and not same(source.sizes[d], 1)]
    rows = [d for d in range(rank) if d not in dims and not same(source.sizes[d], 1)]
    joined = _joined([source], source.sizes, columns)
    if len(joined) != 1 or not same(source.strides[joined[0][-1]], 1):
        return None
    groups = _joined([source, target], source.sizes, rows)
    sizes = (
        *(product([source.sizes[d] for d in group]) for group in groups),
        product([source.sizes[d] for d in joined[0]]),
    )
    places = [group[-1] for group in groups]
    read = View(
        root=source.root,
        dtype=source.dtype,
        sizes=sizes,
        strides=(*(source.strides[d] for d in places), 1),
        offset=source.offset,
    )
    written = View(
        root=target.root,
        dtype=target.dtype,
        sizes=sizes,
        strides=(*(target.strides[d] for d in places), 0),
        offset=target.offset,
    )
    return Kernel(sizes=sizes, results=[(written, step(read))], names=[name])


def _views(kernel: Kernel) -> list[View]:
    return [*kernel.writes, *kernel.reads]


def _memory_order(view: View) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest; as they are where a stride is not known."""
    strides = view.strides
    if not all(isinstance(stride, int) for stride in strides):
        return tuple(range(len(strides)))
    return tuple(sorted(range(len(strides)), key=lambda d: -int(strides[d])))


def _joined(views: Sequence[View], sizes: Sequence[Dim], order: Sequence[int]) -> list[list[int]]:
    groups: list[list[int]] = []
    for d in order:
        if same(sizes[d], 1):
            continue
        if groups and all(same(v.strides[groups[-1][-1]], v.strides[d] * sizes[d]) for v in views):
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _changed(kernel: Kernel, sizes: tuple[Dim, ...], strides_of: Callable[[View], tuple[Dim, ...]]) -> Kernel:
    views: dict[int, View] = {}

    def view(old: View) -> View:
        if id(old) not in views:
            views[id(old)] = replace(old, sizes=sizes, strides=strides_of(old))
        return views[id(old)]

    return replace(kernel_over(kernel, view), sizes=sizes)
