"""Values that take the place of one that dies: a loop may write an element where it has just read that element."""

from dicp.dims import same, same_places
from dicp.program import Kernel, Program, Root, RootKind, View


def heirs(program: Program) -> dict[int, Root]:
    """By the id of a root of the arena: whose place it takes, of a root that nobody needs when it is first written."""
    lives, touches = program.lives(), program.touches()
    found: dict[int, Root] = {}
    for at, instruction in enumerate(program.instructions):
        if not isinstance(instruction, Kernel):
            continue
        taken: set[int] = set()
        for view in instruction.writes:
            if lives[id(view.root)][0] != at:
                continue
            for given in instruction.reads:
                first, last = lives[id(given.root)]
                dies = first < at == last and not touches[id(given.root)] & ~(program.before(at) | 1 << at)
                if dies and id(given.root) not in taken and _may_take(instruction, view, given.root):
                    found[id(view.root)] = given.root
                    taken.add(id(given.root))
                    break
    return found


def _may_take(kernel: Kernel, written: View, dying: Root) -> bool:
    """Whether every element of `dying` is last read where `written` gets the element of the same place."""
    root = written.root
    if root.kind is not RootKind.ARENA or dying.kind is not RootKind.ARENA or not same(root.bytes, dying.bytes):
        return False
    if sum(1 for view in kernel.writes if view.root is root) > 1 or _shares_elements(written):
        return False
    return all(same_places(written, view) for view in kernel.reads if view.root is dying)


def _shares_elements(view: View) -> bool:
    """One element has several places in the loop: it is written while others are still read."""
    return any(same(stride, 0) and not same(size, 1) for size, stride in zip(view.sizes, view.strides, strict=True))
