"""DICP_CHECK: each instruction against the eager operators, on every run; the first that differs ends it by name."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from dicp.program import Program, Root, View

# How far an element may be off, in roundings of the tensor's largest element: sums in another order, and halves that a
# fused kernel does not round on the way.
_ROUNDINGS = {torch.float64: 1024.0, torch.float32: 1024.0, torch.bfloat16: 16.0, torch.float16: 64.0}


class Mismatch(Exception):
    """An instruction gave something else than the eager operators; the message names it and an element."""


def checked_values(program: Program) -> list[tuple[int, str, View]]:
    """What there is to compare: after which instruction, of which node of the graph, and where it lies.

    A value that several instructions write is compared after the last; one that stays inside a kernel is not there.
    """
    last: dict[int, int] = {}
    for index, instruction in enumerate(program.instructions):
        for view in instruction.writes:
            last[id(view.root)] = index
    names = {name: index for index, i in enumerate(program.instructions) for name in i.names}
    found = [
        (last[id(view.root)], name, view)
        for name, view in program.values.items()
        if name in names and last.get(id(view.root)) == names[name] and _stored(program, names[name], view.root)
    ]
    return sorted(found, key=lambda row: row[0])


def checking(
    run: Callable[[list[Any]], Any], executable: Any, module: fx.GraphModule, places: Sequence[tuple[int, str, int]]
) -> Callable[[list[Any]], Any]:
    """`run` with a comparison after each instruction; `places` are as of checked_values(), views by their numbers."""
    titles = executable.instructions()
    known = {node.name for node in module.graph.nodes}
    places = [place for place in places if place[1] in known]  # not the parts of nodes that were separated

    def run_checked(arguments: list[Any]) -> Any:
        expected = _eager_values(module, arguments, {name for _, name, _ in places})

        def watch(instruction: int) -> None:
            for at, name, view in places:
                if at == instruction:
                    _compare(titles[at], name, executable.view(view), expected[name])

        executable.set_watch(watch)
        try:
            return run(arguments)
        finally:
            executable.set_watch(None)

    return run_checked


def _stored(program: Program, index: int, root: Root) -> bool:
    return any(view.root is root for view in program.instructions[index].writes)


class _Recorder(fx.Interpreter):
    """Runs a graph node by node and keeps copies of what some of them give."""

    def __init__(self, module: fx.GraphModule, names: set[str]) -> None:
        super().__init__(module)
        self._names = names
        self.found: dict[str, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if n.name in self._names and isinstance(result, torch.Tensor):
            self.found[n.name] = result.detach().clone()
        return result


def _eager_values(module: fx.GraphModule, arguments: Sequence[Any], names: set[str]) -> dict[str, torch.Tensor]:
    """On copies of the arguments; random numbers are drawn as the program will draw them."""
    copies = [_copy(value) for value in arguments]
    device = next(value.device for value in arguments if isinstance(value, torch.Tensor))
    generator = getattr(torch, device.type)
    state = generator.get_rng_state(device)
    recorder = _Recorder(module, names)
    with torch.no_grad():
        recorder.run(*copies)
    generator.set_rng_state(state, device)
    return recorder.found


def _copy(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    copy = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=value.device)
    return copy.copy_(value) if not any(stride == 0 for stride in value.stride()) else value.clone()


def _compare(title: str, name: str, found: torch.Tensor, expected: torch.Tensor) -> None:
    if tuple(found.shape) != tuple(expected.shape):
        raise Mismatch(
            f"{title}: '{name}' has the sizes {tuple(found.shape)}, eager mode gives {tuple(expected.shape)}"
        )
    here, there = found.detach().clone().cpu(), expected.cpu()
    if here.dtype.is_floating_point:
        wide, exact = here.double(), there.double()
        finite = exact[exact.isfinite()]
        scale = float(finite.abs().max()) if finite.numel() else 0.0
        allowed = _ROUNDINGS.get(here.dtype, 1.0) * torch.finfo(here.dtype).eps * scale
        same = (wide == exact) | (wide.isnan() & exact.isnan()) | ((wide - exact).abs() <= allowed)
    else:
        same = here == there
    if bool(same.all()):
        return
    wrong = int((~same).sum())
    at = tuple((~same).nonzero()[0].tolist())
    raise Mismatch(
        f"{title}: '{name}'{list(at)} is {here[at].item()}, eager mode gives {there[at].item()} "
        f"({wrong} of {here.numel()} elements differ)"
    )
