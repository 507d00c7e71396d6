"""The entry: `torch.compile(model, backend="diopi")`, and what makes the backend of a vendor with its own target."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import fx

from dicp import explain
from dicp.cache import built
from dicp.debug.check import checked_values, checking
from dicp.debug.profile import profiled
from dicp.lower import Unsupported, lower
from dicp.once import once
from dicp.passes import optimized
from dicp.settings import Settings, settings
from dicp.target import Target

Run = Callable[[list[Any]], Any]
Backend = Callable[..., Callable[..., Any]]


def backend(name: str, target: Callable[[], Target]) -> Backend:
    """What torch.compile takes as a backend; `target` is asked for each graph. See docs/adding-a-compiler-target.md."""

    def compile_for_target(module: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        from torch._dynamo.backends.common import aot_autograd

        _heed(name, options)
        phases, keeping = _phases(name, compile_for_target, target)
        made = aot_autograd(**phases, partition_fn=_partitioned, keep_inference_input_mutations=True)
        with keeping:
            function: Callable[..., Any] = made(module, inputs)
        return function

    compile_for_target.__name__ = name
    compile_for_target.target = target  # type: ignore[attr-defined]
    return compile_for_target


def _phases(
    name: str, function: Backend, target: Callable[[], Target]
) -> tuple[dict[str, Any], AbstractContextManager[None]]:
    """The compilers of AOTAutograd's graphs, and where it keeps what they made meanwhile."""
    words = {"fw_compiler": "forward", "bw_compiler": "backward", "inference_compiler": "inference"}
    if settings().cache_graphs or torch._dynamo.config.caching_precompile:
        from dicp import graphs

        if graphs.can_keep(name, function):
            kept = {word: graphs.keeping(name, phase, target) for word, phase in words.items()}
            return kept, graphs.cache_of(target())

    def plain(phase: str) -> Callable[[fx.GraphModule, Any], Run]:
        return lambda graph, example: compiled(graph, phase, target())

    return {word: plain(phase) for word, phase in words.items()}, nullcontext()


def _partitioned(joint: fx.GraphModule, inputs: Any, **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Forward and backward, with as little kept between them as torch's partitioner finds."""
    from torch._functorch import config
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    joint.graph.eliminate_dead_code()
    joint.graph = once(joint.graph)
    with config.patch(cse=False):
        return min_cut_rematerialization_partition(joint, inputs, **options)


def _heed(name: str, given: dict[str, Any]) -> None:
    """Options of torch.compile that mean nothing here are told, not dropped in silence."""
    options = {**given, **given.get("options", {})}
    for option in sorted(set(options) - {"mode", "options"}):
        raise ValueError(f"the backend {name} has no option '{option}'; its variables are in docs/torch-compile.md")
    if options.get("mode") not in (None, "default"):
        warnings.warn(f"mode='{options['mode']}' changes nothing for the backend {name}", stacklevel=3)


@cache
def vendor_target() -> Target:
    """How programs of the loaded vendor are built. Raises FileNotFoundError."""
    from torch_dipu._library_path import library_dir

    return Target.read(library_dir())


diopi = backend("diopi", vendor_target)


def compiled(module: fx.GraphModule, phase: str, target: Target) -> Run:
    """One graph of AOTAutograd as a function that takes a list, which it empties, and gives a list."""
    return reported(module, phase, target)[0]


def reported(module: fx.GraphModule, phase: str, target: Target) -> tuple[Run, explain.Report]:
    """The same, with what became of the graph."""
    read = settings()
    report = explain.Report(phase=phase, graph=module, suffix=target.suffix)
    explain.remember(report)
    try:
        return _boxed(_program(module, target, read, report)), report
    except Unsupported as reason:
        if read.strict:
            raise
        report.program, report.whole_graph = None, str(reason)
        return eager(module), report


def _program(module: fx.GraphModule, target: Target, read: Settings, report: explain.Report) -> Run:
    from torch_dipu import _native

    program = optimized(lower(once(module.graph), module, target.table, _native.load().vendor_has))
    if read.strict:
        explain.refuse_islands(program)
    checks = checked_values(program) if read.check else []
    try:
        emitted = target.emit(program, [view for _, _, view in checks])
    except KeyError as symbol:
        raise Unsupported(f"a size follows from {symbol}, which is no argument") from symbol
    executable = target.load(emitted, built(target, emitted.source, read.cache))
    report.program, report.emitted, report.executable = program, emitted, executable
    if read.dump is not None:
        report.write(read.dump)
    run: Run = executable.run
    if read.check:
        places = [(at, name, view) for (at, name, _), view in zip(checks, emitted.watched, strict=True)]
        return checking(run, executable, module, places)
    return profiled(run, executable, report.phase) if read.profile else run


def eager(module: fx.GraphModule) -> Run:
    """Node by node."""

    def run(arguments: list[Any]) -> Any:
        values = list(arguments)
        arguments.clear()
        with torch.no_grad():
            return module(*values)

    return _boxed(run)


def _boxed(run: Run) -> Run:
    """What AOTAutograd may give its arguments in a list that goes empty."""

    def call(arguments: list[Any]) -> Any:
        return run(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
