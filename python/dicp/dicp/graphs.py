"""Compiled graphs in torch's own caches: a new process does without AOTAutograd, or without Dynamo, too.

DICP_CACHE_GRAPHS=1 asks for the cache of AOTAutograd, TORCH_CACHING_PRECOMPILE=1, which is torch's, for both. Folder,
key, format and safety between processes are torch's, and so are the limits on what it keeps. Of a program it keeps a
text that this module writes and reads, JSON of the source and the executor's specification; the library comes from
dicp's cache, or is built again. Imported where one of the variables is set.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._dynamo.backends.registry import lookup_backend
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.aot_autograd_result import SerializedGraphModule
from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache
from torch._functorch._aot_autograd.schemas import SerializableAOTDispatchCompiler
from torch._inductor.output_code import OutputCode

from dicp import explain, fingerprint, serialization
from dicp.cache import built
from dicp.compilation import CompileRequest, Run, compiled, eager, reported
from dicp.emit.source import Emitted
from dicp.settings import settings
from dicp.target import Target
from dicp.training import with_backward

_OF_NO_PROGRAM = ("dump", "check", "profile", "cache", "cache_graphs")  # settings that change nothing in a program


@dataclass
class KeptProgram(OutputCode):
    """A program that torch's caches can hold."""

    backend: str  # the name under which torch.compile finds it
    phase: str  # "forward", "backward" or "inference"
    text: str  # JSON; "" for what cannot be kept
    graph: SerializedGraphModule  # as torch keeps one: for a package whose program is another compiler's or library's
    run: Run | None = None

    def __post_init__(self) -> None:
        self._boxed_call = True  # it takes a list, which it empties; wrappers copy what is the object's own

    def __call__(self, inputs: Sequence[Any]) -> Any:
        assert self.run is not None
        return self.run(inputs)  # type: ignore[arg-type]

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptProgram, (self.backend, self.phase, self.text, self.graph)

    def prepare_for_serialization(self) -> None:
        """Raises BypassAOTAutogradCache, which torch takes for an answer."""
        if not self.text:
            raise BypassAOTAutogradCache("the graph runs node by node, or brings tensors along")

    def post_compile(self, example_inputs: Any, constants: Any, graph_kwargs: Any) -> None:
        """Loads the program, once what torch kept is found."""
        target: Target = lookup_backend(self.backend).target()  # type: ignore[attr-defined]
        found = json.loads(self.text)
        if found["key"] != _key(target):
            self.run = _made_again(self, target)
            return
        emitted = Emitted(
            source=found["source"], specification=serialization.deserialized(found["specification"]), watched=()
        )
        executable = target.load(emitted, built(target, emitted.source, settings().cache))
        self.run = executable.run
        explain.remember(explain.Report(phase=self.phase, graph=None, emitted=emitted, executable=executable))


def keeping(backend: str, phase: str, target: Callable[[], Target], request: CompileRequest) -> Any:
    """A compiler of AOTAutograd whose programs are kept."""

    def kept(module: fx.GraphModule, example: Sequence[Any]) -> KeptProgram:
        run, report = reported(module, phase, target(), example, request)
        # What is kept of a graph are its nodes.
        graph = SerializedGraphModule(fx.GraphModule(module, module.graph))
        return KeptProgram(backend, phase, _written(report, target()), graph, run)

    return SerializableAOTDispatchCompiler(KeptProgram, kept)


def can_keep(backend: str, function: Callable[..., Any]) -> bool:
    """Whether another process will find the backend by its name, and nobody asks to look at graphs."""
    read = settings()
    if read.check or read.profile or read.dump is not None:
        return False
    try:
        return lookup_backend(backend) is function
    except torch._dynamo.exc.InvalidBackend:
        return False


@contextmanager
def cache_of(target: Target, request: CompileRequest) -> Iterator[None]:
    """While AOTAutograd looks for a graph and keeps it: what the program depends on is part of torch's key."""
    config: Any = torch.compiler.config
    tag = f"{config.cache_key_tag} dicp {_key(target)}{' recorded' if request.replays else ''}"
    whole = functorch_config.patch(bundled_autograd_cache=True)
    with config.patch(cache_key_tag=tag), whole, with_backward():  # which is kept with the forward
        yield


def _key(target: Target) -> str:
    """What a graph's program depends on beside the graph: target, tables, settings, and this package itself."""
    tables = sorted((target.folder / "compiler").glob("*.json"))
    own = sorted(Path(__file__).parent.rglob("*.py"))
    read = {name: value for name, value in asdict(settings()).items() if name not in _OF_NO_PROGRAM}
    parts = [target.key, repr(read), *fingerprint.digests(tables), *fingerprint.digests(own)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _written(report: explain.Report, target: Target) -> str:
    emitted = report.emitted
    if emitted is None or emitted.specification["constants"]:
        return ""
    try:
        specification = serialization.serialized(emitted.specification)
    except serialization.NotSerializable:
        return ""
    return json.dumps({"key": _key(target), "source": emitted.source, "specification": specification})


def _made_again(kept: KeptProgram, target: Target) -> Run:
    """torch's packages know nothing of what a program depends on: where that changed, the first call compiles."""
    made: list[Run] = []

    def run(arguments: list[Any]) -> Any:
        if not made:
            made.append(_compiled_again(kept.graph.deserialize(), arguments, kept.phase, target))
        return made[0](arguments)

    return run


def _compiled_again(module: fx.GraphModule, arguments: Sequence[Any], phase: str, target: Target) -> Run:
    """The program of a graph whose nodes have lost their sizes; one of sizes that are symbols runs node by node."""
    from torch.fx.experimental.proxy_tensor import make_fx

    if not all(isinstance(argument, torch.Tensor) for argument in arguments):
        return eager(module)
    with torch.no_grad():
        traced = make_fx(module, tracing_mode="fake", _allow_non_fake_inputs=True)  # its constants are tensors
        return compiled(traced(*arguments), phase, target, arguments)
