"""One graph of AOTAutograd becomes a function: lowered, optimized, emitted, built and loaded."""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import fx

from dicp import explain
from dicp.cache import built
from dicp.cse import eliminate_common_subexpressions
from dicp.debug.check import checked_values, checking
from dicp.debug.memory import check_memory
from dicp.debug.profile import profiled
from dicp.decompositions import decompositions
from dicp.graph_passes.aliases import without_aliases
from dicp.graph_passes.losses import join_losses
from dicp.graph_passes.separate_elements import separate_elements
from dicp.lower import NothingOnDevice, Unsupported, lower
from dicp.orders import Readers, put_channels_innermost
from dicp.passes import optimized
from dicp.patterns import Applied
from dicp.saved_layouts import adapt, saved_from, tell_strides
from dicp.settings import Settings, settings
from dicp.slices import joined_slices
from dicp.target import Target

Run: TypeAlias = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRequest:
    """What is known of a graph, or wanted of its program, beside the graph."""

    patterns: tuple[Applied, ...] = ()  # what was found before it was differentiated
    replays: bool = False  # runs are recorded where the device can, and done again by one launch
    later: bool = False  # the program is built meanwhile: its callable has a `Later` as `executable`


_NOTHING = CompileRequest()


def compiled(
    module: fx.GraphModule, phase: str, target: Target, example: Sequence[Any], request: CompileRequest = _NOTHING
) -> Run:
    """One graph as a function that takes a list, which it empties, and gives a list.

    `phase` is "forward", "backward" or "inference", `example` what the graph was traced with.
    """
    return reported(module, phase, target, example, request)[0]


def reported(
    module: fx.GraphModule, phase: str, target: Target, example: Sequence[Any], request: CompileRequest = _NOTHING
) -> tuple[Run, explain.Report]:
    """The same, with what became of the graph."""
    from torch_dipu import _native

    read = settings()
    without_aliases(module, saved_from(module) if phase == "forward" else None)
    adapt(module, example, Readers(target.table, _native.load().vendor_has))
    report = explain.Report(phase=phase, graph=module, suffix=target.suffix, patterns=request.patterns)
    explain.remember(report)
    try:
        return _boxed(_program(module, target, read, report, request)), report
    except Unsupported as reason:
        if read.strict:
            raise
        report.program, report.whole_graph = None, str(reason)
        if not isinstance(reason, NothingOnDevice):
            warnings.warn(report.text(), stacklevel=2)
        return eager(module), report


class Later:
    """A program that is built in a thread, while its caller goes on with another graph."""

    def __init__(self, build: Callable[[], Path], load: Callable[[Path], Any]) -> None:
        builder = ThreadPoolExecutor(1)
        self._library, self._load = builder.submit(build), load
        builder.shutdown(wait=False)

    @cached_property
    def executable(self) -> Any:
        """The loaded program, once it is built. Raises BuildFailed and Unwritable."""
        return self._load(self._library.result())

    def run(self, arguments: list[Any]) -> Any:
        return self.executable.run(arguments)


def _program(
    module: fx.GraphModule, target: Target, read: Settings, report: explain.Report, request: CompileRequest
) -> Run:
    from torch_dipu import _native

    graph, served = joined_slices(eliminate_common_subexpressions(module.graph)), _native.load().vendor_has
    graph = join_losses(separate_elements(graph, target.table, served), decompositions())
    visible = saved_from(module) if report.phase == "forward" else None
    if put_channels_innermost(graph, Readers(target.table, served), visible) and visible is not None:
        tell_strides(graph)
    # Who looks on sees instructions in their order.
    streams = 1 if read.check or read.profile else read.streams
    program = optimized(lower(graph, module, target.table, served), streams)
    if read.strict:
        explain.refuse_islands(program)
    if read.check:
        check_memory(program, graph)
    checks = checked_values(program) if read.check else []
    try:
        emitted = target.emit(program, [view for _, _, view in checks])
    except KeyError as symbol:
        raise Unsupported(f"a size follows from {symbol}, which is no argument") from symbol
    if request.replays:
        emitted.specification.update(_of_replays(report.phase, len(program.results), graph))
    report.program, report.emitted = program, emitted

    def loaded(library: Path) -> Any:
        report.executable = target.load(emitted, library)
        return report.executable

    build = partial(built, target, emitted.source, read.cache)
    if request.later and not (read.dump or read.check or read.profile):
        return Later(build, loaded).run
    executable = loaded(build())
    if read.dump is not None:
        report.write(read.dump)
    run: Run = executable.run
    if read.check:
        places = [(at, name, view) for (at, name, _), view in zip(checks, emitted.watched, strict=True)]
        return checking(run, executable, module, places)
    return profiled(run, executable, report.phase) if read.profile else run


def _of_replays(phase: str, results: int, graph: fx.Graph) -> dict[str, Any]:
    """What the executor must know to record runs, by the names of compiled/program.h."""
    context = torch._guards.TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    fixed = [index for index, node in enumerate(placeholders) if _is_strided_anew(node)]
    found = {"replays": True, "held": [], "visible": 0, "fixed": fixed}
    if phase == "backward" or metadata is None:  # autograd takes what it gives
        return found
    visible = metadata.num_forward_returns if phase == "forward" else results
    return {**found, "held": list(metadata.static_input_indices), "visible": visible}


def _is_strided_anew(node: fx.Node) -> bool:
    """Whether a view of the node has strides of its own, which may reach beyond the node's last element."""
    for user in node.users:
        target = user.target
        if target is torch.ops.aten.as_strided.default:
            return True
        if isinstance(target, torch._ops.OpOverload) and target.is_view and _is_strided_anew(user):
            return True
    return False


def eager(module: fx.GraphModule) -> Run:
    """Node by node."""

    def run(arguments: list[Any]) -> Any:
        values = list(arguments)
        arguments.clear()
        with torch.no_grad():
            return module(*values)

    return _boxed(run)


def _boxed(run: Run) -> Run:
    """What AOTAutograd may give its arguments in a list that goes empty; it knows what it is a method of."""

    def call(arguments: list[Any]) -> Any:
        return run(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    call.executable = getattr(run, "__self__", None)  # type: ignore[attr-defined]
    return call
