"""A program as JSON: instructions with what they read and write, memory with its place in the arena."""

from typing import Any

from dicp.program import Dim, Instruction, Island, Kernel, LibraryCall, Program, Root, View


def document(program: Program) -> dict[str, Any]:
    """Sizes that follow from symbols are texts."""
    roots: dict[int, int] = {}
    rows: list[dict[str, Any]] = []
    lives: dict[int, list[int]] = {}

    def number(root: Root) -> int:
        if id(root) not in roots:
            roots[id(root)] = len(rows)
            row: dict[str, Any] = {"kind": root.kind.value, "bytes": _dim(root.bytes)}
            if root.kind.value == "arena":
                row["offset"] = _dim(root.offset)
            rows.append(row)
        return roots[id(root)]

    instructions = []
    for index, instruction in enumerate(program.instructions):
        for view in (*instruction.reads, *instruction.writes):
            lives.setdefault(number(view.root), []).append(index)
        instructions.append(
            {
                **_what(instruction),
                "nodes": list(instruction.names),
                "reads": [_view(view, number) for view in instruction.reads],
                "writes": [_view(view, number) for view in instruction.writes],
            }
        )
    for index, row in enumerate(rows):
        row["first"], row["last"] = min(lives[index]), max(lives[index])
    return {
        "device": str(program.device),
        "arguments": program.arguments,
        "symbols": {str(symbol): argument for symbol, argument in program.symbols.items()},
        "arena_bytes": _dim(program.arena_bytes),
        "unplanned_bytes": _dim(program.unplanned_bytes),
        "launches_unfused": program.launches_unfused,
        "memory": rows,
        "instructions": instructions,
    }


def _what(instruction: Instruction) -> dict[str, Any]:
    match instruction:
        case Kernel():
            steps = [step.kernel for step in instruction.steps]
            return {"kind": "kernel", "sizes": [_dim(size) for size in instruction.sizes], "steps": steps}
        case LibraryCall():
            return {"kind": "call", "function": instruction.symbol}
        case Island():
            return {"kind": "island", "operator": instruction.operator, "why": instruction.reason}


def _view(view: View, number: Any) -> dict[str, Any]:
    return {
        "memory": number(view.root),
        "dtype": str(view.dtype).removeprefix("torch."),
        "sizes": [_dim(size) for size in view.sizes],
        "strides": [_dim(stride) for stride in view.strides],
        "offset": _dim(view.offset),
    }


def _dim(value: Dim) -> int | str:
    return value if isinstance(value, int) else str(value)
