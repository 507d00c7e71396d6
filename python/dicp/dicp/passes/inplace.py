"""Functions of the library that work in the memory of what they read, where nobody needs that any more."""

from dataclasses import replace

from dicp.dims import same, same_places
from dicp.program import LibraryCall, Program, RootKind, View
from dicp.rewrite import put_views


def in_place(program: Program) -> Program:
    """Calls the in-place form of a function where its input dies, or its output is that very memory."""
    for at, call in enumerate(program.instructions):
        views = call.inplace_views() if isinstance(call, LibraryCall) else None
        if views is None or not same_places(*views):
            continue
        read, written = views
        if read.root is not written.root:
            if not _dies(program, at, read, written):
                continue
            put_views(program, lambda view, r=read, w=written: _moved(view, r, w))  # type: ignore[misc]
        changed = program.instructions[at]
        assert isinstance(changed, LibraryCall)
        program.instructions[at] = _without_output(changed)
    return program


def _dies(program: Program, at: int, read: View, written: View) -> bool:
    """Whether what is read is the program's own, not needed later, and what is written not there before."""
    lives = program.lives()
    fits = written.root.kind in (RootKind.ARENA, RootKind.OUTPUT) and same(read.root.bytes, written.root.bytes)
    first, last = lives[id(read.root)]
    return fits and read.root.kind is RootKind.ARENA and first < at == last and lives[id(written.root)][0] == at


def _moved(view: View, read: View, written: View) -> View:
    return replace(view, root=written.root) if view.root is read.root else view


def _without_output(call: LibraryCall) -> LibraryCall:
    assert call.inplace is not None
    written = call.arguments[call.inplace.written]
    arguments = list(call.arguments)
    arguments[call.inplace.read] = written
    del arguments[call.inplace.written]
    return replace(call, symbol=call.inplace.symbol, arguments=tuple(arguments), inplace=None)
