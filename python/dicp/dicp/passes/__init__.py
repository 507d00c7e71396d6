"""From a program to a better one; `optimized` is the list, in order."""

from dicp.passes.dead_code import without_dead_code
from dicp.passes.direct import written_directly
from dicp.passes.fuse import fused
from dicp.passes.inplace import in_place
from dicp.passes.memory import planned
from dicp.passes.streams import on_streams
from dicp.program import Program


def optimized(program: Program, streams: int = 1) -> Program:
    """Everything that is done to a program before it is emitted; `streams` is how many instructions may run at once."""
    program = without_dead_code(program)
    program.launches_unfused = len(program.instructions)
    program = fused(written_directly(program))
    program = without_dead_code(program)
    program = in_place(program)
    return planned(on_streams(program, streams) if streams > 1 else program)
