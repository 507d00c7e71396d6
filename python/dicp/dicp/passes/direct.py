"""What is made to be copied elsewhere is written there at once."""

from dataclasses import replace

from dicp.dims import same, same_places
from dicp.program import Instruction, Kernel, LibraryCall, Program, RootKind, View, extent, product
from dicp.rewrite import put_views


def written_directly(program: Program) -> Program:
    """Drops copies where nobody needs what lies there, e.g. in an argument, once what is copied is being made."""
    at = 0
    while at < len(program.instructions):
        copied = _copied(program.instructions[at])
        if copied is not None and _is_free(program, at, *copied):
            source, target = copied
            del program.instructions[at]
            put_views(program, lambda view, s=source, t=target: _moved(view, s, t))  # type: ignore[misc]
        else:
            at += 1
    return program


def _copied(instruction: Instruction) -> tuple[View, View] | None:
    """What of a value of the program's own goes where, if that is all that the instruction does."""
    if not isinstance(instruction, Kernel) or len(instruction.results) != 1:
        return None
    target, step = instruction.results[0]
    source = step.operands[0]
    if step.kernel != "copy" or not isinstance(source, View) or target.root is source.root:
        return None
    elements = extent(source.sizes, source.strides)
    whole = same(product(source.sizes), elements) and same(source.root.bytes, elements * source.dtype.itemsize)
    alike = same_places(replace(source, offset=target.offset), target)
    own = source.root.kind is RootKind.ARENA and target.root.kind is not RootKind.ISLAND
    return (source, target) if own and whole and alike else None


def _is_free(program: Program, copy: int, source: View, target: View) -> bool:
    """Whether nobody but the copy touches where it goes, from the value's first instruction on to its last."""
    if any(view.root is source.root and view.dtype.itemsize != source.dtype.itemsize for view in program.views()):
        return False
    first, last = program.lives()[id(source.root)]
    for at in range(first, last + 1):
        instruction = program.instructions[at]
        if at != copy and any(view.root is target.root for view in instruction.writes):
            return False
        if at > copy and any(view.root is source.root for view in instruction.writes):
            return False
        read = [view for view in instruction.reads if view.root is target.root]
        written = [_moved(view, source, target) for view in instruction.writes if view.root is source.root]
        if at < copy and read and not (at == first and _reads_what_it_writes(instruction, read, written)):
            return False
    return True


def _reads_what_it_writes(instruction: Instruction, read: list[View], written: list[View]) -> bool:
    """A loop that reads no element there but the one that it writes, or a function that can do its work there."""
    if isinstance(instruction, LibraryCall):
        views = instruction.inplace_views()
        return views is not None and len(read) == 1 and read[0] is views[0] and same_places(read[0], written[0])
    return isinstance(instruction, Kernel) and len(written) == 1 and all(same_places(written[0], v) for v in read)


def _moved(view: View, source: View, target: View) -> View:
    if view.root is not source.root:
        return view
    return replace(view, root=target.root, offset=view.offset + target.offset - source.offset)
