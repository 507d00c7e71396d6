"""What is made to be copied elsewhere is written there at once."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from dicp.dims import all_same, apart, same, same_places
from dicp.program import Instruction, Kernel, LibraryCall, Program, RootKind, View, extent, product
from dicp.rewrite import put_views

# Loops write runs of so many bytes at least where they write elsewhere at once: shorter ones cost more than a copy.
_RUN = 16

Move = Callable[[View], View | None]  # where what lies in the copied memory will lie; None: no view can say it


def written_directly(program: Program) -> Program:
    """Drops copies where nobody needs what lies there, e.g. in an argument, once what is copied is being made."""
    while _copy_less(program):  # a part of a part moves when the whole has its place
        pass
    return program


def _copy_less(program: Program) -> bool:
    """Whether there was a copy that could go."""
    at, before = 0, len(program.instructions)
    while at < len(program.instructions):
        copied = _copied(program.instructions[at])
        if copied is not None and copied[0].root is copied[1].root and same_places(*copied):
            del program.instructions[at]  # what it copied lies there by now
            continue
        move = None if copied is None or not _is_own(*copied) else _move(*copied)
        if copied is not None and move is not None and _is_free(program, at, *copied, move):
            del program.instructions[at]
            put_views(program, partial(_moved, move))
        else:
            at += 1
    return len(program.instructions) < before


def _moved(move: Move, view: View) -> View:
    return move(view) or view


def _copied(instruction: Instruction) -> tuple[View, View] | None:
    """What goes where, if that is all that the instruction does."""
    if not isinstance(instruction, Kernel) or len(instruction.results) != 1:
        return None
    target, step = instruction.results[0]
    source = step.operands[0]
    return (source, target) if step.kernel == "copy" and isinstance(source, View) else None


def _is_own(source: View, target: View) -> bool:
    """Whether all of a value of the program's own is copied, as it is, to where it may lie."""
    elements = extent(source.sizes, source.strides)
    whole = same(product(source.sizes), elements) and same(source.root.bytes, elements * source.dtype.itemsize)
    own = source.root.kind is RootKind.ARENA and target.root.kind is not RootKind.ISLAND
    return own and whole and source.dtype == target.dtype and target.root is not source.root


def _move(source: View, target: View) -> Move | None:
    if same_places(replace(source, offset=target.offset), target):
        return lambda view: _at(view, source, target, view.strides, view.offset + target.offset - source.offset)
    axes = _axes(source, target)
    return None if axes is None else lambda view: _along(view, source, target, axes)


def _at(view: View, source: View, target: View, strides: tuple[object, ...], offset: object) -> View | None:
    if view.root is not source.root:
        return view
    if view.dtype.itemsize != source.dtype.itemsize:
        return None
    return replace(view, root=target.root, strides=strides, offset=offset)


@dataclass(frozen=True, slots=True)
class _Axis:
    """Neighbours by one stride in the copied memory, and by another where they go."""

    size: int
    source: int
    target: int


def _axes(source: View, target: View) -> list[_Axis] | None:
    """Of a copy to other strides, the fastest first; None where those are not known or not worth it."""
    numbers = (*source.sizes, *source.strides, source.offset, *target.strides, target.offset)
    if not all(isinstance(number, int) for number in numbers):
        return None
    given = zip(source.sizes, source.strides, target.strides, strict=True)
    found: list[_Axis] = []
    elements = 1
    for axis in sorted((_Axis(*each) for each in given if each[0] != 1), key=lambda axis: axis.source):
        if axis.size == 0 or axis.source != elements:
            return None
        elements *= axis.size
        last = found[-1] if found else None
        if last is not None and axis.target == last.target * last.size:
            found[-1] = replace(last, size=last.size * axis.size)
        else:
            found.append(axis)
    runs = bool(found) and found[0].target == 1 and found[0].size * source.dtype.itemsize >= _RUN
    return found if runs and source.offset == 0 else None


def _along(view: View, source: View, target: View, axes: list[_Axis]) -> View | None:
    if view.root is not source.root:
        return view
    numbers = (*view.sizes, *view.strides, view.offset)
    if not all(isinstance(number, int) for number in numbers):
        return None
    offset = target.offset
    reach = []  # along each axis, the last place that the view has
    for axis in axes:
        first = view.offset // axis.source % axis.size
        offset = offset + first * axis.target
        reach.append(first)
    strides = []
    for size, stride in zip(view.sizes, view.strides, strict=True):
        place = max((at for at, axis in enumerate(axes) if axis.source <= stride), default=0)
        axis = axes[place]
        if size != 1 and stride % axis.source != 0:
            return None
        strides.append(stride // axis.source * axis.target)
        reach[place] += (size - 1) * (stride // axis.source)
    inside = all(last < axis.size for last, axis in zip(reach, axes, strict=True))
    return _at(view, source, target, tuple(strides), offset) if inside else None


def _takes_gaps(instruction: Instruction, source: View, move: Move) -> bool:
    """Loops take any order; functions of libraries write rows that lie behind each other as they did, with gaps.

    What they read stays as it is: some copy what has gaps, each for itself.
    """
    if isinstance(instruction, Kernel):
        return True
    fits = _in_one_order if isinstance(instruction, LibraryCall) else _as_before
    read = (view for view in instruction.reads if view.root is source.root)
    written = (view for view in instruction.writes if view.root is source.root)
    return all(_as_before(view, _moved(move, view)) for view in read) and all(
        fits(view, _moved(move, view)) for view in written
    )


def _as_before(view: View, moved: View) -> bool:
    return all_same(view.strides, moved.strides)


def _in_one_order(view: View, moved: View) -> bool:
    if _as_before(view, moved):
        return True
    steps = zip(view.sizes, view.strides, moved.strides, strict=True)
    ordered = sorted((stride, other) for size, stride, other in steps if size != 1)
    return all(a[1] < b[1] for a, b in itertools.pairwise(ordered))


def _is_free(program: Program, copy: int, source: View, target: View, move: Move) -> bool:
    """Whether nobody but the copy touches where it goes, from the value's first instruction on to its last."""
    if any(move(view) is None for view in program.views()):
        return False
    first, last = program.lives()[id(source.root)]
    for at in range(first, last + 1):
        instruction = program.instructions[at]
        if at != copy and any(view.root is target.root and not apart(view, target) for view in instruction.writes):
            return False
        if at > copy and any(view.root is source.root for view in instruction.writes):
            return False
        own = [view for view in instruction.writes if view.root is source.root]
        written = [moved for view in own if (moved := move(view)) is not None]
        if at != copy and not _takes_gaps(instruction, source, move):
            return False
        read = [view for view in instruction.reads if view.root is target.root and not apart(view, target)]
        if at < copy and read and not (at == first and _reads_what_it_writes(instruction, read, written)):
            return False
    return True


def _reads_what_it_writes(instruction: Instruction, read: list[View], written: list[View]) -> bool:
    """A loop that reads no element there but the one that it writes, or a function that can do its work there."""
    if isinstance(instruction, LibraryCall):
        views = instruction.inplace_views()
        return views is not None and len(read) == 1 and read[0] is views[0] and same_places(read[0], written[0])
    return isinstance(instruction, Kernel) and len(written) == 1 and all(same_places(written[0], v) for v in read)
