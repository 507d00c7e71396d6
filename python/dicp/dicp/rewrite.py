"""Programs with other views in place of theirs."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from dicp.program import CallArgument, Instruction, Island, Kernel, LibraryCall, Operand, Program, Result, Step, View

Replace = Callable[[View], View]


def put_views(program: Program, other: Replace) -> None:
    """Puts other(view) in place of each view, the same for each view that is named more than once."""
    made: dict[int, tuple[View, View]] = {}  # the old one, so that its id stays its own

    def view(old: View) -> View:
        if id(old) not in made:
            made[id(old)] = (old, other(old))
        return made[id(old)][1]

    program.instructions = [_instruction(instruction, view) for instruction in program.instructions]
    program.results = [
        Result(kind=result.kind, value=view(result.value)) if isinstance(result.value, View) else result
        for result in program.results
    ]
    program.values = {name: view(value) for name, value in program.values.items()}


def kernel_over(kernel: Kernel, view: Replace) -> Kernel:
    """The kernel with other views; `view` gives the same for the same."""
    steps: dict[int, Step] = {}

    def operand(old: Operand) -> Operand:
        return view(old) if isinstance(old, View) else steps[id(old)] if isinstance(old, Step) else old

    for old in kernel.steps:
        steps[id(old)] = replace(old, operands=tuple(operand(o) for o in old.operands))
    results = [(view(target), steps[id(step)]) for target, step in kernel.results]
    return replace(kernel, results=results)


def _instruction(instruction: Instruction, view: Replace) -> Instruction:
    """The instruction itself where no view changes."""
    reads, writes = tuple(map(view, instruction.reads)), tuple(map(view, instruction.writes))
    same = _same(instruction.reads, reads) and _same(instruction.writes, writes)
    if isinstance(instruction, Kernel):
        return instruction if same else kernel_over(instruction, view)
    arguments = tuple(_argument(argument, view) for argument in instruction.arguments)
    same = same and _same(instruction.arguments, arguments)
    if isinstance(instruction, LibraryCall):
        other = instruction.substitute
        substitute = None if other is None else _instruction(other, view)
        assert substitute is None or isinstance(substitute, Island)
        if same and substitute is other:
            return instruction
        return replace(instruction, arguments=arguments, reads=reads, writes=writes, substitute=substitute)
    results = tuple(None if result is None else view(result) for result in instruction.results)
    if same and _same(instruction.results, results):
        return instruction
    return replace(instruction, arguments=arguments, reads=reads, writes=writes, results=results)


def _argument(argument: CallArgument, view: Replace) -> CallArgument:
    value = argument.value
    items = value if isinstance(value, tuple) else (value,)
    others = tuple(view(item) if isinstance(item, View) else item for item in items)
    if _same(items, others):
        return argument
    return replace(argument, value=others if isinstance(value, tuple) else others[0])


def _same(old: Sequence[object], new: Sequence[object]) -> bool:
    return all(a is b for a, b in zip(old, new, strict=True))
