"""DICP_CHECK: the memory plan against torch's trace, when a program is built."""

from torch import fx

from dicp.lower.state import listed, storage_of, tensors
from dicp.passes.reuse import heirs
from dicp.program import Program, Root, RootKind


class MemoryConflict(Exception):
    """Two values share memory that must not, or have two memories that must be one; the message names them."""


def check_memory(program: Program, graph: fx.Graph) -> None:
    """Raises MemoryConflict."""
    _check_aliases(program, graph)
    _check_places(program)


def _check_aliases(program: Program, graph: fx.Graph) -> None:
    """The rule of aliases, see lower/state.py: tensors of one storage in torch's trace are views over one root."""
    known: dict[int, tuple[str, Root]] = {}
    for node in graph.nodes:
        view = program.values.get(node.name)
        for tensor in tensors(listed(node.meta.get("val"))) if view is not None else ():
            storage = storage_of(tensor)
            if storage is None or view is None:
                continue
            name, root = known.setdefault(storage, (node.name, view.root))
            if not root.may_be(view.root):
                raise MemoryConflict(f"'{node.name}' shares memory with '{name}' in the graph, and not in the program")


def _check_places(program: Program) -> None:
    """Values that have a place of the arena in common are not needed at the same time."""
    touches, taken = program.touches(), heirs(program)
    arena = [root for root in program.roots() if root.kind is RootKind.ARENA and isinstance(root.bytes, int)]
    for at, one in enumerate(arena):
        for other in arena[:at]:
            if not isinstance(one.offset, int) or not isinstance(other.offset, int):
                continue
            apart = one.offset + int(one.bytes) <= other.offset or other.offset + int(other.bytes) <= one.offset
            inherits = taken.get(id(one)) is other or taken.get(id(other)) is one
            if not (apart or inherits or _in_turn(program, touches[id(one)], touches[id(other)])):
                raise MemoryConflict(
                    f"two values of {one.bytes} and {other.bytes} bytes meet at {one.offset} of the arena"
                )


def _in_turn(program: Program, one: int, other: int) -> bool:
    """Whether the instructions of one value are over when any of the other's begins."""
    return any(
        all(not first & ~program.before(at) for at in range(then.bit_length()) if then >> at & 1)
        for first, then in ((one, other), (other, one))
    )
