"""The entry: `torch.compile(model, backend="diopi")`, and what makes the backend of a vendor with its own target."""

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import fx

from dicp import explain
from dicp.between import adapt, saved_from, tell_strides
from dicp.cache import built
from dicp.debug.check import checked_values, checking
from dicp.debug.profile import profiled
from dicp.decompositions import decompositions
from dicp.lower import Unsupported, lower
from dicp.orders import Readers, put_channels_innermost
from dicp.passes import optimized
from dicp.patterns import Applied, rewritten
from dicp.settings import Settings, settings
from dicp.slices import joined_slices
from dicp.target import Target
from dicp.training import Training

Run = Callable[[list[Any]], Any]
Backend = Callable[..., Callable[..., Any]]


def backend(name: str, target: Callable[[], Target]) -> Backend:
    """What torch.compile takes as a backend; `target` is asked for each graph. See docs/adding-a-compiler-target.md."""

    def compile_for_target(module: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.partitioners import min_cut_rematerialization_partition

        _heed(name, options)
        training = Training(inputs)
        found = _patterns(module, target())
        made = aot_autograd(
            fw_compiler=training.forward(lambda graph, example: compiled(graph, "forward", target(), example, found)),
            bw_compiler=training.backward(lambda graph, example: compiled(graph, "backward", target(), example, found)),
            inference_compiler=lambda graph, example: compiled(graph, "inference", target(), example, found),
            decompositions=decompositions(),
            partition_fn=min_cut_rematerialization_partition,
            keep_inference_input_mutations=True,
        )
        return training.called(made(module, inputs))

    compile_for_target.__name__ = name
    return compile_for_target


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


def _patterns(module: fx.GraphModule, target: Target) -> tuple[Applied, ...]:
    """The idioms of a graph of Dynamo that became operators of the vendor."""
    from torch_dipu import _native

    chosen = target.patterns.chosen(settings().patterns)
    return rewritten(module, chosen, _native.load().vendor_has) if chosen else ()


def compiled(
    module: fx.GraphModule, phase: str, target: Target, example: Sequence[Any], patterns: tuple[Applied, ...] = ()
) -> Run:
    """One graph of AOTAutograd as a function that takes a list, which it empties, and gives a list."""
    from torch_dipu import _native

    read = settings()
    adapt(module, example, Readers(target.table, _native.load().vendor_has))
    report = explain.Report(phase=phase, graph=module, suffix=target.suffix, patterns=patterns)
    explain.remember(report)
    try:
        return _boxed(_program(module, target, read, report))
    except Unsupported as reason:
        if read.strict:
            raise
        report.program, report.whole_graph = None, str(reason)
        return _boxed(_eager(module))


def _program(module: fx.GraphModule, target: Target, read: Settings, report: explain.Report) -> Run:
    from torch._functorch.compile_utils import fx_graph_cse

    from torch_dipu import _native

    # What is computed twice is computed once; random operators and those that write are left alone.
    graph, served = joined_slices(fx_graph_cse(module.graph)), _native.load().vendor_has
    visible = saved_from(module) if report.phase == "forward" else None
    if put_channels_innermost(graph, Readers(target.table, served), visible) and visible is not None:
        tell_strides(graph)
    # Who looks on sees instructions in their order.
    streams = 1 if read.check or read.profile else read.streams
    program = optimized(lower(graph, module, target.table, served), streams)
    if read.strict:
        explain.refuse_islands(program)
    checks = checked_values(program) if read.check else []
    try:
        emitted = target.emit(program, [view for _, _, view in checks])
    except KeyError as symbol:
        raise Unsupported(f"a size follows from {symbol}, which is no argument") from symbol
    executable = target.load(emitted, built(target, emitted.source, read.cache))
    report.program, report.source, report.executable = program, emitted.source, executable
    if read.dump is not None:
        report.write(read.dump)
    run: Run = executable.run
    if read.check:
        places = [(at, name, view) for (at, name, _), view in zip(checks, emitted.watched, strict=True)]
        return checking(run, executable, module, places)
    return profiled(run, executable, report.phase) if read.profile else run


def _eager(module: fx.GraphModule) -> Run:
    def run(arguments: list[Any]) -> Any:
        values = list(arguments)
        arguments.clear()
        with torch.no_grad():
            return module(*values)

    return run


def _boxed(run: Run) -> Run:
    """What AOTAutograd may give its arguments in a list that goes empty; it knows what it is a method of."""

    def call(arguments: list[Any]) -> Any:
        return run(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    call.executable = getattr(run, "__self__", None)  # type: ignore[attr-defined]
    return call
