"""The two programs of a training graph as one function of C++, in place of what AOTAutograd wraps them in.

AOTAutograd's wrappers of Python are for everything that a graph may ask for: subclasses, outputs that alias inputs,
random states, symbols. A graph that asks for none of it runs without them.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import torch
from torch import fx

from dicp.compilation import Later
from diopigen.vocabulary.torch_releases import asks_for_gradient

Function = Callable[..., Any]
Compile = Callable[[fx.GraphModule, Sequence[Any]], Function]


class Training:
    """Watches the programs of one graph of Dynamo; when both are there, calls go to them."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._arguments = len(inputs)
        self._metadata: Any = None
        self._forward: Function | None = None  # runs the program
        self._backward: Function | None = None
        self._given: dict[str, Any] | None = None  # if both may be called so
        self._awaited = False  # by whoever compiles
        self._function: Function | None = None

    def forward(self, compile_: Compile) -> Compile:
        """`compile_` for forward graphs; what AOTAutograd knows of the graph is remembered."""

        def compiled(module: fx.GraphModule, example: Sequence[Any]) -> Function:
            self._forward = compile_(module, example)
            context = torch._guards.TracingContext.try_get()
            if context is not None and len(_placeholders(module)) == self._arguments and is_plain(context.fw_metadata):
                self._metadata = context.fw_metadata
            return self._forward

        return compiled

    def backward(self, compile_: Compile) -> Compile:
        """`compile_` for backward graphs, which AOTAutograd may ask for as late as the first backward pass."""

        def compiled(module: fx.GraphModule, example: Sequence[Any]) -> Function:
            self._backward = compile_(module, example)
            if self._metadata is not None and len(_results(module)) == self._arguments:
                self._given = specification(self._metadata, module)
            if self._awaited:
                self._join()
            return self._backward

        return compiled

    def _join(self) -> None:
        """Waits for the programs that are built meanwhile. Raises what went wrong there."""
        self._awaited = True
        forward, backward = executable_of(self._forward), executable_of(self._backward)
        if self._given is not None and forward is not None and backward is not None:
            self._function = _function(forward, backward, self._given)

    def called(self, wrapped: Function) -> Function:
        """AOTAutograd's function; it is left out where the programs may be called themselves."""
        from torch._dynamo import compiled_autograd

        transformed = torch._C._functorch.peek_interpreter_stack
        self._join()

        @wraps(wrapped)
        def call(*arguments: Any) -> Any:
            function = self._function
            if function is None or compiled_autograd.compiled_autograd_enabled or transformed() is not None:
                return wrapped(*arguments)
            return function(*arguments)

        return call


def with_backward() -> Any:
    """While AOTAutograd compiles: it asks for both programs, not for the backward one in the first backward pass."""
    from torch._functorch import config

    return config.patch(force_non_lazy_backward_lowering=True)


def executable_of(run: Function | None) -> Any:
    """The program that a compiled function runs; None where that is not all, or a vendor brings its own."""
    from torch_dipu import _native

    executable = getattr(run, "executable", None)
    if isinstance(executable, Later):
        executable = executable.executable
    return executable if isinstance(executable, _native.load().CompiledProgram) else None


def is_plain(metadata: Any) -> bool:
    """Whether a call of the graph is a run of its forward program, and nothing else."""
    if metadata is None:
        return False
    plain = torch._functorch._aot_autograd.schemas.PlainTensorMeta
    tensors = (*metadata.subclass_inp_meta, *metadata.subclass_fw_graph_out_meta, *metadata.subclass_tangent_meta)
    asks = (
        metadata.num_mutated_inp_runtime_indices,
        metadata.num_outputs_aliased,
        metadata.num_intermediate_bases,
        metadata.num_symints_saved_for_bw,
        metadata.num_opaque_objects_saved_for_bw,
        metadata.num_graphsafe_rng_states,
        metadata.num_backward_tokens,
        metadata.tokens,
        metadata.is_rng_op_functionalized,
        metadata.dynamic_outputs,
        metadata.grad_enabled_mutation is not None,
        metadata.indices_of_inputs_that_requires_grad_with_mutations_in_bw,
    )
    same = all(output.requires_grad == asks_for_gradient(output) for output in metadata.output_info)
    return not any(asks) and same and all(isinstance(tensor, plain) for tensor in tensors)


def specification(metadata: Any, backward: fx.GraphModule) -> dict[str, Any] | None:
    """What the function must know, by the names of compiled/function.h; None where sizes are symbols."""
    outputs = [at for at, output in enumerate(metadata.output_info) if output.requires_grad]
    taken = [node.meta["val"] for node in _placeholders(backward)]
    saved = len(taken) - len(outputs)
    tangents = []
    for output, value in zip(outputs, taken[saved:], strict=True):
        if not isinstance(value, torch.Tensor) or value._has_symbolic_sizes_strides:
            return None
        tangents.append((output, list(value.shape), list(value.stride())))
    return {
        "outputs": metadata.num_outputs,
        "checked": saved - metadata.num_tensors_saved_with_no_vc_check,
        "tangents": tangents,
        "gradients": [at for at, result in enumerate(_results(backward)) if result is not None],
        "written": metadata.mutated_graph_handled_indices_seen_by_autograd,
        "deterministic": metadata.deterministic is not False,
    }


def _function(forward: Any, backward: Any, given: dict[str, Any]) -> Function:
    from torch_dipu import _native

    function: Function = _native.load().CompiledFunction(forward, backward, given)
    return function


def _placeholders(module: fx.GraphModule) -> list[fx.Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def _results(module: fx.GraphModule) -> Sequence[Any]:
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    results: Sequence[Any] = output.args[0]
    return results
