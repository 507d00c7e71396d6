"""The loop of a kernel: dimensions in the order of memory, neighbours joined where every operand lets them."""

from collections.abc import Callable, Sequence

from dicp.dims import contiguous_strides, same
from dicp.program import Dim, Index, Kernel, Scalar, Step, View, product


def collapsed(kernel: Kernel) -> Kernel:
    """The same kernel over as few dimensions as its operands allow, the fastest of the first result last."""
    views = _views(kernel)
    order = _memory_order(kernel.results[0][0])
    if any(isinstance(o, Index) for step in kernel.steps() for o in step.operands):
        order = tuple(range(len(kernel.sizes)))  # elements are counted in the order of the sizes
    groups = _joined(views, kernel.sizes, order)
    sizes = tuple(product([kernel.sizes[d] for d in group]) for group in groups)
    return _changed(kernel, sizes, lambda view: tuple(view.strides[group[-1]] for group in groups))


def reshaped(kernel: Kernel, sizes: tuple[Dim, ...]) -> Kernel | None:
    """A kernel whose operands are all dense, or one element, as a loop over other sizes; None for any other."""
    if len(kernel.sizes) != 1 or not same(kernel.sizes[0], product(sizes)):
        return None
    if any(not same(view.strides[0], 1) and not same(view.strides[0], 0) for view in _views(kernel)):
        return None
    dense = contiguous_strides(sizes)
    return _changed(kernel, sizes, lambda view: dense if same(view.strides[0], 1) else tuple(0 for _ in sizes))


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
    steps: dict[int, Step] = {}

    def view(old: View) -> View:
        if id(old) not in views:
            views[id(old)] = View(
                root=old.root, dtype=old.dtype, sizes=sizes, strides=strides_of(old), offset=old.offset
            )
        return views[id(old)]

    def operand(old: View | Step | Scalar | Index) -> View | Step | Scalar | Index:
        return view(old) if isinstance(old, View) else steps[id(old)] if isinstance(old, Step) else old

    for old in kernel.steps():
        steps[id(old)] = Step(
            kernel=old.kernel,
            operands=tuple(operand(o) for o in old.operands),
            compute=old.compute,
            dtype=old.dtype,
            rounds=old.rounds,
            name=old.name,
        )
    results = [(view(target), steps[id(step)]) for target, step in kernel.results]
    return Kernel(sizes=sizes, results=results, names=kernel.names)
