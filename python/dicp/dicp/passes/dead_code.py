"""Instructions and stores that nobody reads."""

from dicp.program import Island, Kernel, Program, Root, RootKind, View


def without_dead_code(program: Program) -> Program:
    """Drops what only writes memory that is neither read later nor returned; random operators draw on."""
    needed = {id(r.value.root) for r in program.results if isinstance(r.value, View)}
    kept = []
    for instruction in reversed(program.instructions):
        if isinstance(instruction, Kernel):
            own = {id(view.root) for view in instruction.reads}
            live = [(v, s) for v, s in instruction.results if _lives(v.root, needed) or id(v.root) in own]
            if not live:
                continue
            instruction.results = live
        elif not (isinstance(instruction, Island) and instruction.random):
            if instruction.writes and not any(_lives(view.root, needed) for view in instruction.writes):
                continue
        needed |= {id(view.root) for view in instruction.reads}
        kept.append(instruction)
    program.instructions = kept[::-1]
    return program


def _lives(root: Root, needed: set[int]) -> bool:
    return root.kind not in (RootKind.ARENA, RootKind.ISLAND) or id(root) in needed
