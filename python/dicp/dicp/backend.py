"""The entry: `torch.compile(model, backend="diopi")`, and what makes the backend of a vendor with its own target."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import fx

from dicp.compilation import CompileRequest, Run, compiled
from dicp.cse import eliminate_common_subexpressions
from dicp.decompositions import decompositions
from dicp.graph_passes.losses import join_losses
from dicp.patterns import Applied, rewritten
from dicp.settings import settings
from dicp.target import Target
from dicp.training import Training, with_backward

Backend = Callable[..., Callable[..., Any]]
Targets = Callable[[], Target]

# The words of AOTAutograd for its three graphs, and ours.
_PHASES = {"fw_compiler": "forward", "bw_compiler": "backward", "inference_compiler": "inference"}


def backend(name: str, target: Targets) -> Backend:
    """A backend for torch.compile; `target` is called for each graph. See docs/adding-a-compiler-target.md."""

    def compile_for_target(module: fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        replays = _heed(name, options)
        request = CompileRequest(patterns=_patterns(module, target()), replays=replays)
        if _keeps_graphs(name, compile_for_target):
            return _kept(name, target, request)(module, inputs)
        return _plain(target, request, inputs)(module, inputs)

    compile_for_target.__name__ = name
    compile_for_target.target = target  # type: ignore[attr-defined]
    return compile_for_target


def _plain(target: Targets, request: CompileRequest, inputs: Sequence[Any]) -> Backend:
    """AOTAutograd over the compiler; from its second step on a training graph goes past AOTAutograd's wrappers."""

    def compiler(phase: str) -> Callable[[fx.GraphModule, Sequence[Any]], Run]:
        asked = replace(request, later=phase != "inference")  # there is another one to build meanwhile
        return lambda graph, example: compiled(graph, phase, target(), example, asked)

    training = Training(inputs)
    phases = {word: compiler(phase) for word, phase in _PHASES.items()}
    phases["fw_compiler"] = training.forward(phases["fw_compiler"])
    phases["bw_compiler"] = training.backward(phases["bw_compiler"])

    def compile_(module: fx.GraphModule, given: Sequence[Any]) -> Callable[..., Any]:
        with with_backward():
            return training.called(_differentiated(phases)(module, given))

    return compile_


def _kept(name: str, target: Targets, request: CompileRequest) -> Backend:
    """The same with programs that torch's own caches of graphs hold."""
    from dicp import graphs

    phases = {word: graphs.keeping(name, phase, target, request) for word, phase in _PHASES.items()}

    def compile_(module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        with graphs.cache_of(target(), request):
            return _differentiated(phases)(module, inputs)

    return compile_


def _keeps_graphs(name: str, function: Backend) -> bool:
    if not (settings().cache_graphs or torch._dynamo.config.caching_precompile):
        return False
    from dicp import graphs

    return graphs.can_keep(name, function)


def _differentiated(phases: dict[str, Any]) -> Backend:
    from torch._dynamo.backends.common import aot_autograd

    made: Backend = aot_autograd(
        **phases, decompositions=decompositions(), partition_fn=_partitioned, keep_inference_input_mutations=True
    )
    return made


def _partitioned(joint: fx.GraphModule, inputs: Any, **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Forward and backward, with as little kept between them as torch's partitioner finds."""
    from torch._functorch import config
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    joint.graph.eliminate_dead_code()
    joint.graph = join_losses(eliminate_common_subexpressions(joint.graph), decompositions())
    with config.patch(cse=False):
        return min_cut_rematerialization_partition(joint, inputs, **options)


def _heed(name: str, given: dict[str, Any]) -> bool:
    """Whether runs are to be recorded. Options that mean nothing here are told, not dropped in silence."""
    from torch_dipu import _native

    options = {**given, **given.get("options", {})}
    for option in sorted(set(options) - {"mode", "options"}):
        raise ValueError(f"the backend {name} has no option '{option}'; its variables are in docs/torch-compile.md")
    mode = options.get("mode")
    if mode == "reduce-overhead" and _native.load().device_records():
        return True
    if mode == "reduce-overhead":
        warnings.warn(
            "mode='reduce-overhead' changes nothing: this device does not record what it is given", stacklevel=3
        )
    elif mode not in (None, "default"):
        warnings.warn(f"mode='{mode}' changes nothing for the backend {name}", stacklevel=3)
    return False


def _patterns(module: fx.GraphModule, target: Target) -> tuple[Applied, ...]:
    """The idioms of a graph of Dynamo that became operators of the vendor."""
    from torch_dipu import _native

    chosen = target.patterns.chosen(settings().patterns)
    return rewritten(module, chosen, _native.load().vendor_has) if chosen else ()


@cache
def vendor_target() -> Target:
    """How programs of the loaded vendor are built. Raises FileNotFoundError."""
    from torch_dipu._library_path import library_dir, vendor_library

    beside = vendor_library(library_dir()).parent
    # A variant of a chip has its library in a folder of its own, below that of the chip's.
    return Target.read(beside if (beside / "compiler").is_dir() else library_dir())


diopi = backend("diopi", vendor_target)
