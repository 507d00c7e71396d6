"""The entry: `torch.compile(model, backend="diopi")`."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import fx

from dicp import explain
from dicp.cache import built
from dicp.debug.check import checked_values, checking
from dicp.debug.profile import profiled
from dicp.emit.source import emit
from dicp.lower import Unsupported, lower
from dicp.passes import optimized
from dicp.settings import settings
from dicp.target import Target


def diopi(module: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compiles a graph of Dynamo for the vendor that torch_dipu has loaded."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    backend = aot_autograd(
        fw_compiler=lambda graph, example: compiled(graph, "forward"),
        bw_compiler=lambda graph, example: compiled(graph, "backward"),
        inference_compiler=lambda graph, example: compiled(graph, "inference"),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    function: Callable[..., Any] = backend(module, inputs)
    return function


@cache
def vendor_target() -> Target:
    """How programs of the loaded vendor are built. Raises FileNotFoundError."""
    from torch_dipu._library_path import library_dir

    return Target.read(library_dir())


def compiled(module: fx.GraphModule, phase: str) -> Callable[[list[Any]], Any]:
    """One graph of AOTAutograd as a function that takes a list, which it empties, and gives a list."""
    from torch_dipu import _native

    read = settings()
    native = _native.load()
    target = vendor_target()
    report = explain.Report(phase=phase, graph=module)
    try:
        program = optimized(lower(module.graph, module, target.table, native.vendor_has))
    except Unsupported as reason:
        if read.strict:
            raise
        report.whole_graph = str(reason)
        return _boxed(_eager(module), report)
    if read.strict:
        explain.refuse_islands(program)
    checks = checked_values(program) if read.check else []
    try:
        emitted = emit(program, target.table, [view for _, _, view in checks])
    except KeyError as symbol:
        report.whole_graph = f"a size follows from {symbol}, which is no argument"
        return _boxed(_eager(module), report)
    library = built(target, emitted.source, read.cache)
    executable = native.CompiledProgram({**emitted.specification, "library": str(library)})
    report.program, report.source, report.suffix, report.executable = program, emitted.source, target.suffix, executable
    if read.dump is not None:
        report.write(read.dump)
    run: Callable[[list[Any]], Any] = executable.run
    if read.check:
        places = [(at, name, view) for (at, name, _), view in zip(checks, emitted.watched, strict=True)]
        run = checking(run, executable, module, places)
    elif read.profile:
        run = profiled(run, executable, phase)
    return _boxed(run, report)


def _eager(module: fx.GraphModule) -> Callable[[list[Any]], Any]:
    def run(arguments: list[Any]) -> Any:
        values = list(arguments)
        arguments.clear()
        with torch.no_grad():
            return module(*values)

    return run


def _boxed(run: Callable[[list[Any]], Any], report: explain.Report) -> Callable[[list[Any]], Any]:
    def call(arguments: list[Any]) -> Any:
        return run(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]
    explain.remember(report)
    return call
