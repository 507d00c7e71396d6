"""The walk over a graph: what each node becomes, what comes in and what goes out."""

import operator
from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch import fx

from dicp.calls import Served, Unserved, bound_call
from dicp.dims import dim, host_number
from dicp.islands import island
from dicp.lower.arguments import named_arguments, numbers_fit, resolved
from dicp.lower.folds import fold_of_rows
from dicp.lower.host_numbers import computed_on_host, is_host_number
from dicp.lower.memory import converted, copied, is_conversion, is_view, memory_kernel, viewed
from dicp.lower.pointwise import pointwise
from dicp.lower.state import NothingOnDevice, State, Unsupported, is_lazy, is_slot, listed, overlaps, tensors, view_over
from dicp.operators import Table, overload_of
from dicp.program import Island, Program, Result, Root, RootKind, Scalar, View

_WAIT = "_c10d_functional.wait_tensor.default"  # gives its argument, once that is there


def lower(graph: fx.Graph, module: fx.GraphModule, table: Table, served: Callable[[str], bool]) -> Program:
    """Raises Unsupported. `served` says whether the vendor's library has a function."""
    state = State(table=table, served=served, device=_device_of(graph))
    return _Walk(state, graph, module).program()


class _Walk:
    def __init__(self, state: State, graph: fx.Graph, module: fx.GraphModule) -> None:
        self._state, self._graph, self._module = state, graph, module
        self._placeholders = [node for node in graph.nodes if node.op == "placeholder"]

    def program(self) -> Program:
        results: list[Result] = []
        values = self._state.values
        for node in self._graph.nodes:
            match node.op:
                case "placeholder":
                    values[node] = self._placeholder(node)
                case "get_attr":
                    values[node] = self._constant(node)
                case "call_function":
                    values[node] = self._called(node)
                    self._state.know(node.meta.get("val"), values[node])
                case "output":
                    results = [self._result(value) for value in node.args[0]]
                case _:
                    raise Unsupported(f"a graph with a node of the kind '{node.op}'")
        return Program(
            device=self._state.device,
            arguments=len(self._placeholders),
            symbols=self._symbols(),
            instructions=self._state.instructions,
            results=results,
            constants=self._state.constants,
            values={
                node.name: value for node, value in values.items() if isinstance(value, View) and not is_slot(value)
            },
            slots=self._state.slots,
        )

    def _symbols(self) -> dict[sympy.Symbol, int]:
        """Where each symbol is an argument of its own."""
        found: dict[sympy.Symbol, int] = {}
        for index, node in enumerate(self._placeholders):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol):
                found.setdefault(value.node.expr, index)
            elif self._state.values[node] == host_number(index) or host_number(index) in self._state.read:
                found[host_number(index)] = index
        return found

    def _placeholder(self, node: fx.Node) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            index = self._placeholders.index(node)
            if self._is_only_a_number(node):
                return host_number(index)
            if self._state.plain(value) and not (value.is_conj() or value.is_neg()):
                return view_over(Root(kind=RootKind.INPUT, index=index), value, 0)
            view = self._state.slot(value)
            view.root.index = index
            if is_host_number(value):
                self._state.numbers[node] = host_number(index)
            return view
        if isinstance(value, torch.SymInt | int):
            return dim(value)
        if value is None:
            return None
        raise Unsupported(f"an argument of the type {type(value).__name__}")

    def _is_only_a_number(self, node: fx.Node) -> bool:
        """Whether a tensor of the host is only read by operators of the device, which take its value as a number."""
        if not is_host_number(node.meta["val"]):
            return False
        for user in node.users:
            if not isinstance(user.target, torch._ops.OpOverload) or _mutates(user.target) or node not in user.args:
                return False
            value = user.meta["val"]
            if is_conversion(user) and is_host_number(value):
                if not self._is_only_a_number(user):
                    return False
            elif not isinstance(value, torch.Tensor) or not self._state.plain(value):
                return False
        return True

    def _constant(self, node: fx.Node) -> View:
        tensor = self._module
        for part in str(node.target).split("."):
            tensor = getattr(tensor, part)
        if not isinstance(tensor, torch.Tensor):
            raise Unsupported(f"the attribute '{node.target}', which is not a tensor")
        index = len(self._state.constants)
        self._state.constants.append(tensor)
        if self._state.plain(tensor) and not (tensor.is_conj() or tensor.is_neg()):
            return view_over(Root(kind=RootKind.CONSTANT, index=index), tensor, 0)
        view = self._state.slot(tensor)
        view.root.index = len(self._placeholders) + index
        return view

    def _called(self, node: fx.Node) -> Any:
        value, target, state = node.meta.get("val"), node.target, self._state
        if target is operator.getitem:
            return state.values[node.args[0]][node.args[1]]  # type: ignore[index]
        if isinstance(value, torch.SymInt | torch.SymFloat | int) and not isinstance(value, bool):
            return dim(value)
        if not isinstance(target, torch._ops.OpOverload):
            raise Unsupported(f"'{node.name}' calls {target}, which is no operator")
        if is_host_number(value) and (made := converted(state, node, value)) is not None:
            return made
        if (number := computed_on_host(state, node, value)) is not None:
            state.numbers[node] = number
        if self._reads(node, is_slot) or not all(state.plain(tensor) for tensor in tensors(value)):
            return self._island(node, value, "tensors that are not the device's, or of sizes that only data decide")
        name = str(target)
        if is_view(target):
            return viewed(state, node, value)
        if self._reads(node, is_lazy) or any(tensor.is_conj() or tensor.is_neg() for tensor in tensors(value)):
            return self._island(node, value, "conjugate or negative views")
        if any(overlaps(tensor) for tensor in tensors(value)):
            return self._island(node, value, "torch foresees a result whose elements share memory")
        if not numbers_fit(node):
            return self._island(node, value, "a number beyond the dtype, which eager mode takes or refuses")
        if name == "aten.copy_.default" and (made := copied(state, node)) is not None:
            return made
        overload = overload_of(name)
        bound = state.table.bound(name)
        made = memory_kernel(state, node, name, value)
        if made is None and bound is not None:
            made = fold_of_rows(state, node, bound.reduce, value)
        if made is not None:
            return made
        reason = "no binding"
        if bound is not None and not _mutates(target):
            try:
                if bound.kernel is not None:
                    return pointwise(state, node, overload, value)
                return self._call(node, overload, value)
            except Unserved as why:
                reason = str(why)
        return self._island(node, value, reason)

    def _reads(self, node: fx.Node, kind: Callable[[Any], bool]) -> bool:
        """Whether an argument is a tensor of a kind; loops take those that are numbers."""
        state, name = self._state, str(node.target)
        bound = state.table.bound(name)
        loops = bound is not None and bound.kernel is not None and not _mutates(node.target)  # type: ignore[arg-type]
        items = [
            item
            for given in node.all_input_nodes
            if not (loops and given in state.numbers)
            for item in listed(state.values[given])
        ]
        return any(map(kind, items))

    def _call(self, node: fx.Node, overload: str, value: Any) -> Any:
        state = self._state
        outputs = [state.new(v) if isinstance(v, torch.Tensor) else _number(node, v) for v in _flat(value)]
        arguments = resolved(named_arguments(node), state.values)
        taken = _taken(node, value)
        try:  # what nobody reads need not be computed, where the function may be asked for less
            asked = [
                output if at in taken or not isinstance(output, View) else None for at, output in enumerate(outputs)
            ]
            found = bound_call(state.table, overload, arguments, asked, state.served)
        except Unserved:
            found = bound_call(state.table, overload, arguments, outputs, state.served)
        for source, target in found.copies:
            state.kernel(node, "copy", (source,), target, target.dtype)
        found.call.names.append(node.name)
        _put_substitute(found, node, arguments, outputs)
        state.instructions.append(found.call)
        for at in taken - found.results:
            if isinstance(outputs[at], View):
                outputs[at] = self._zeros(node, _flat(value)[at], outputs[at])
        return outputs if isinstance(value, list | tuple) else outputs[0]

    def _zeros(self, node: fx.Node, value: torch.Tensor, output: View) -> View:
        """What the operator returns and its function does not write. A number, e.g. a seed, takes no launch."""
        state = self._state
        if value.dim() > 0:
            state.kernel(node, "copy", (Scalar(value=0),), output, output.dtype)
            return output
        return view_over(Root(kind=RootKind.ZEROS, bytes=value.element_size()), value, 0)

    def _island(self, node: fx.Node, value: Any, reason: str) -> Any:
        """The eager operator; what it returns of its arguments is theirs."""
        target, state = node.target, self._state
        assert isinstance(target, torch._ops.OpOverload)
        named = resolved(named_arguments(node), state.values)
        awaited = [named["tensor"]] if str(target) == _WAIT else []
        shared = _shared(target, named)
        outputs: list[Any] = []
        for index, tensor in enumerate(_flat(value)):
            if not isinstance(tensor, torch.Tensor):
                outputs.append(_number(node, tensor))
                continue
            of = shared.get(0 if len(target._schema.returns) == 1 else index)
            if of is None and state.plain(tensor) and not overlaps(tensor):
                outputs.append(view_over(Root(kind=RootKind.ISLAND), tensor, 0))
            else:
                outputs.append(state.slot(tensor, None if of is None else of.root))
        written = [shared[i] for i, r in enumerate(target._schema.returns) if i in shared and _is_written(r)]
        written += awaited
        results = [] if written else [output if isinstance(output, View) else None for output in outputs]
        made = island(target, node.name, named, results, reason, awaited)
        if made.foreign:
            _keep_what_it_reads(made)
        state.instructions.append(made)
        given: list[Any] = list(written) if written else outputs
        return given if isinstance(value, list | tuple) else given[0] if given else None

    def _result(self, node: Any) -> Result:
        if node is None:
            return Result(kind="nothing")
        if not isinstance(node, fx.Node):
            return Result(kind="number", value=dim(node))
        value = self._state.values[node]
        if value is None:
            return Result(kind="nothing")
        if not isinstance(value, View):
            if not isinstance(value, int) and not value.is_integer:
                raise Unsupported(f"'{node.name}' is a fraction that the graph returns")
            return Result(kind="number", value=value)
        for index, placeholder in enumerate(self._placeholders):
            if self._state.values[placeholder] is value:
                return Result(kind="argument", value=index)
        if value.root.kind is RootKind.ARENA:
            value.root.kind = RootKind.OUTPUT
        return Result(kind="view", value=value)


def _device_of(graph: fx.Graph) -> torch.device:
    for node in graph.nodes:
        for tensor in tensors(node.meta.get("val")):
            if tensor.device.type == torch._C._get_privateuse1_backend_name():
                return tensor.device
    raise NothingOnDevice("nothing in the graph is on the device")


def _keep_what_it_reads(island: Island) -> None:
    """Memory of its own for what an operator reads that may go on when it has returned, e.g. a collective."""
    for view in island.reads:
        if view.root.kind is RootKind.ARENA:
            view.root.kind = RootKind.OUTPUT


def _put_substitute(found: Served, node: fx.Node, named: dict[str, Any], outputs: list[Any]) -> None:
    """The eager operator behind a call, in case the library refuses it.

    What the call updates is already a copy of the argument. What only the operator reads lives as long.
    """
    assert isinstance(node.target, torch._ops.OpOverload)
    updated = {id(source): target for source, target in found.copies}
    arguments = {
        name: updated.get(id(value), value) if isinstance(value, View) else value for name, value in named.items()
    }
    results = [
        output if isinstance(output, View) and at in found.results else None for at, output in enumerate(outputs)
    ]
    call = found.call
    call.substitute = island(node.target, node.name, arguments, results, "the library refuses the call")
    known = {id(view.root) for view in (*call.reads, *call.writes)}
    call.reads += tuple(view for view in call.substitute.reads if id(view.root) not in known)


def _flat(value: Any) -> list[Any]:
    return [] if value is None else list(listed(value))


def _taken(node: fx.Node, value: Any) -> set[int]:
    """The results of a node that others read, by number."""
    if not isinstance(value, list | tuple):
        return {0}
    return {user.args[1] for user in node.users if user.target is operator.getitem}  # type: ignore[misc]


def _number(node: fx.Node, value: Any) -> Any:
    """What an operator gives beside tensors, as far as tracing knows it."""
    if value is None:
        return None
    if isinstance(value, torch.SymInt | int):
        return dim(value) if not isinstance(value, bool) else value
    raise Unsupported(f"'{node.name}' gives a {type(value).__name__}")


def _is_written(formal: Any) -> bool:
    return formal.alias_info is not None and formal.alias_info.is_write


def _mutates(target: torch._ops.OpOverload) -> bool:
    return any(_is_written(formal) for formal in target._schema.arguments)


def _shared(target: torch._ops.OpOverload, named: dict[str, Any]) -> dict[int, View]:
    """By the place of a result: the argument whose memory it shares."""
    found: dict[int, View] = {}
    for index, returned in enumerate(target._schema.returns):
        for formal in target._schema.arguments:
            if returned.alias_info is None or formal.alias_info is None:
                continue
            if returned.alias_info.before_set & formal.alias_info.before_set and isinstance(named[formal.name], View):
                found[index] = named[formal.name]
    return found
