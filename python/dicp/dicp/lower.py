"""From the graph of AOTAutograd to a program: each node becomes a view, a kernel of one step, a call, or an island."""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
import torch
from torch import fx
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from dicp.calls import Unserved, bound_call
from dicp.dims import dim, expanded
from dicp.dtypes import STORAGE, compute_dtype
from dicp.folds import FOLDS, kept_strides, reduced_dims, worth_a_row_kernel
from dicp.islands import island
from dicp.loops import collapsed, row_fold
from dicp.operators import Table
from dicp.program import (
    Dim,
    Index,
    Instruction,
    Kernel,
    Program,
    Result,
    Root,
    RootKind,
    Scalar,
    Step,
    View,
    extent,
    product,
)

_ALIASES = {"aten._unsafe_view.default", "aten.alias.default", "aten.detach.default", "aten.lift_fresh.default"}
_COPIES = {"aten._to_copy.default", "aten.clone.default", "prims.convert_element_type.default"}
_FILLS = {
    "aten.full.default": 1,
    "aten.full_like.default": 1,
    "aten.new_full.default": 2,
    "aten.scalar_tensor.default": 0,
}
_CONSTANT_FILLS = {
    "aten.zeros.default": 0,
    "aten.zeros_like.default": 0,
    "aten.new_zeros.default": 0,
    "aten.ones.default": 1,
    "aten.ones_like.default": 1,
    "aten.new_ones.default": 1,
}
_EMPTIES = {
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.new_empty.default",
    "aten.empty_strided.default",
    "aten.new_empty_strided.default",
}


class Unsupported(Exception):
    """The graph cannot become a program; it runs node by node. The message is one sentence."""


def lower(graph: fx.Graph, module: fx.GraphModule, table: Table, served: Callable[[str], bool]) -> Program:
    """Raises Unsupported. `served` says whether the vendor's library has a function."""
    return _Lowering(graph, module, table, served).program()


class _Lowering:
    def __init__(self, graph: fx.Graph, module: fx.GraphModule, table: Table, served: Callable[[str], bool]) -> None:
        self._graph, self._module, self._table, self._served = graph, module, table, served
        self._values: dict[fx.Node, Any] = {}
        self._placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        self._instructions: list[Instruction] = []
        self._constants: list[torch.Tensor] = []
        self._device = _device_of(graph)

    def program(self) -> Program:
        symbols = self._symbols()
        results: list[Result] = []
        for node in self._graph.nodes:
            match node.op:
                case "placeholder":
                    self._values[node] = self._placeholder(node)
                case "get_attr":
                    self._values[node] = self._constant(node)
                case "call_function":
                    self._values[node] = self._called(node)
                case "output":
                    results = [self._result(value) for value in node.args[0]]
                case _:
                    raise Unsupported(f"a graph with a node of the kind '{node.op}'")
        return Program(
            device=self._device,
            arguments=len(self._placeholders),
            symbols=symbols,
            instructions=self._instructions,
            results=results,
            constants=self._constants,
        )

    def _symbols(self) -> dict[sympy.Symbol, int]:
        """Where each symbol is an argument of its own."""
        found: dict[sympy.Symbol, int] = {}
        for index, node in enumerate(self._placeholders):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and isinstance(value.node.expr, sympy.Symbol):
                found.setdefault(value.node.expr, index)
        return found

    def _placeholder(self, node: fx.Node) -> Any:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            self._on_device(value, node)
            root = Root(kind=RootKind.INPUT, index=self._placeholders.index(node))
            return _view(root, value, 0)
        if isinstance(value, torch.SymInt | int):
            return dim(value)
        if value is None:
            return None
        raise Unsupported(f"an argument of the type {type(value).__name__}")

    def _constant(self, node: fx.Node) -> View:
        tensor = self._module
        for part in str(node.target).split("."):
            tensor = getattr(tensor, part)
        if not isinstance(tensor, torch.Tensor):
            raise Unsupported(f"the attribute '{node.target}', which is no tensor")
        self._on_device(tensor, node)
        root = Root(kind=RootKind.CONSTANT, index=len(self._constants))
        self._constants.append(tensor.detach())
        return _view(root, tensor, 0)

    def _on_device(self, value: torch.Tensor, node: fx.Node) -> None:
        if value.device != self._device:
            raise Unsupported(f"'{node.name}' is on {value.device}, the program on {self._device}")
        if value.layout != torch.strided or value.is_conj() or value.is_neg():
            raise Unsupported(f"'{node.name}' is no plain tensor")

    def _called(self, node: fx.Node) -> Any:
        value = node.meta.get("val")
        target = node.target
        if target is operator.getitem:
            return self._values[node.args[0]][node.args[1]]  # type: ignore[index]
        if isinstance(value, torch.SymInt | int) and not isinstance(value, bool):
            return dim(value)
        if not isinstance(target, torch._ops.OpOverload):
            raise Unsupported(f"'{node.name}' calls {target}, which is no operator")
        for tensor in _tensors(value):
            self._on_device(tensor, node)
            if _unbacked(tensor):
                raise Unsupported(f"'{node.name}' has a size that only its data decide")
        name = str(target)
        if name in _ALIASES or _is_view(target):
            return self._alias(node, value)
        if name == "aten.copy_.default":
            return self._copied(node)
        if name in _EMPTIES and isinstance(value, torch.Tensor):
            return self._new(value)
        made = self._own_kernel(node, name, value)
        if made is None:
            made = self._row_fold(node, name, value)
        if made is not None:
            return made
        overload = name.removeprefix("aten.").removesuffix(".default")
        bound = self._table.operators.get(overload) if name.startswith("aten.") else None
        reason = "no binding"
        if bound is not None and not _mutates(target):
            try:
                if bound.kernel is not None:
                    return self._pointwise(node, overload, value)
                return self._call(node, overload, value)
            except Unserved as why:
                reason = str(why)
        return self._island(node, value, reason)

    def _alias(self, node: fx.Node, value: Any) -> Any:
        source = next(arg for arg in node.args if isinstance(arg, fx.Node))
        base, fake = self._values[source], source.meta["val"]
        if isinstance(value, torch.Tensor):
            return _view_of(base, fake, value)
        return [_view_of(base, fake, item) for item in value]

    def _new(self, value: torch.Tensor) -> View:
        view = _view(Root(kind=RootKind.ARENA), value, 0)
        view.root.bytes = extent(view.sizes, view.strides) * value.element_size()
        return view

    def _copied(self, node: fx.Node) -> View:
        target, source = self._values[node.args[0]], self._values[node.args[1]]  # type: ignore[index]
        operand = source if isinstance(source, View) else Scalar(value=source)
        self._kernel(node, "copy", (operand,), target, target.dtype)
        return target  # type: ignore[no-any-return]

    def _own_kernel(self, node: fx.Node, name: str, value: Any) -> View | None:
        """Operators of memory: conversions, copies, constants and counts."""
        if not isinstance(value, torch.Tensor) or value.dtype not in STORAGE:
            return None
        if name in _COPIES and node.args[0].meta["val"].dtype in STORAGE:  # type: ignore[union-attr]
            return self._stored(node, "copy", (self._values[node.args[0]],), value)  # type: ignore[index]
        if name in _FILLS:
            number = self._scalar(node.args[_FILLS[name]])
            return None if number is None else self._stored(node, "copy", (number,), value)
        if name in _CONSTANT_FILLS:
            return self._stored(node, "copy", (Scalar(value=_CONSTANT_FILLS[name]),), value)
        if name == "aten.cat.default":
            return self._joined(node, value)
        if name.startswith("aten.arange.") and value.dim() == 1:
            given = [self._scalar(arg) for arg in node.args]
            start, step = (given[0] if len(given) > 1 else Scalar(value=0)), (
                given[2] if len(given) > 2 else Scalar(value=1)
            )
            if start is None or step is None:
                return None
            return self._stored(node, "arange", (start, step, Index()), value)
        return None

    def _joined(self, node: fx.Node, value: torch.Tensor) -> View | None:
        """Each part of a concatenation is stored where it belongs, by the loop that computes it where that can be."""
        parts = [self._values[part] for part in node.args[0]]  # type: ignore[union-attr, index]
        if any(part.dtype not in STORAGE or len(part.sizes) != value.dim() for part in parts):
            return None
        along = _named_arguments(node)["dim"] % value.dim()
        target = self._new(value)
        begin: Dim = 0
        for part in parts:
            sizes = tuple(part.sizes[d] if d == along else size for d, size in enumerate(target.sizes))
            offset = begin * target.strides[along]
            place = View(root=target.root, dtype=target.dtype, sizes=sizes, strides=target.strides, offset=offset)
            self._kernel(node, "copy", (part,), place, target.dtype)
            begin = begin + part.sizes[along]
        return target

    def _row_fold(self, node: fx.Node, name: str, value: Any) -> View | None:
        """A reduction of rows that lie in memory one by one, so that it can share a loop with what is around it."""
        fold = FOLDS.get(name)
        if fold is None or not isinstance(value, torch.Tensor):
            return None
        source = self._values[node.args[0]]  # type: ignore[index]
        named = _named_arguments(node)
        if source.dtype not in STORAGE or value.dtype != source.dtype or not value.dtype.is_floating_point:
            return None
        dims = reduced_dims(named.get("dim"), len(source.sizes))
        columns = product([source.sizes[d] for d in dims])
        rows = product([size for d, size in enumerate(source.sizes) if d not in dims])
        if not worth_a_row_kernel(rows, columns):
            return None
        target = self._new(value)
        kept = View(
            root=target.root,
            dtype=target.dtype,
            sizes=tuple(1 if d in dims else size for d, size in enumerate(source.sizes)),
            strides=kept_strides(target, dims, len(source.sizes)),
            offset=0,
        )

        def step(read: View) -> Step:
            compute = compute_dtype(value.dtype)
            return Step(
                kernel=fold,
                operands=(read,),
                compute=compute,
                dtype=value.dtype,
                rounds=False,
                name=node.name,
                fold=True,
            )

        kernel = row_fold(source, kept, dims, step, node.name)
        if kernel is None:
            return None
        self._instructions.append(kernel)
        return target

    def _scalar(self, arg: Any) -> Scalar | None:
        if isinstance(arg, fx.Node):
            arg = self._values[arg]
        return Scalar(value=arg) if isinstance(arg, bool | int | float | sympy.Expr) else None

    def _stored(
        self, node: fx.Node, kernel: str, operands: Sequence[View | Scalar | Index], value: torch.Tensor
    ) -> View:
        target = self._new(value)
        self._kernel(node, kernel, operands, target, value.dtype)
        return target

    def _kernel(
        self, node: fx.Node, kernel: str, operands: Sequence[View | Scalar | Index], target: View, compute: torch.dtype
    ) -> None:
        sizes = target.sizes
        read = tuple(expanded(o, sizes) if isinstance(o, View) else o for o in operands)
        step = Step(
            kernel=kernel,
            operands=read,
            compute=compute_dtype(compute),
            dtype=target.dtype,
            rounds=kernel == "copy",
            name=node.name,
        )
        self._instructions.append(collapsed(Kernel(sizes=sizes, results=[(target, step)], names=[node.name])))

    def _pointwise(self, node: fx.Node, overload: str, value: Any) -> View:
        bound = self._table.operators[overload]
        text = self._table.kernels[bound.kernel or ""]
        if not isinstance(value, torch.Tensor):
            raise Unserved("its kernel has one result")
        sources = bound.routes[-1].sources
        named = _named_arguments(node)
        operands: list[View | Scalar | Index] = []
        tensors: list[Any] = []
        for name in text.params:
            condition = next((c for c in text.conditions if c.name == name), None)
            if condition is not None:
                operands.append(Scalar(value=_holds(condition.equals, sources[condition.param], named)))
                continue
            given = _given(sources[name], named)
            operand = self._values[given] if isinstance(given, fx.Node) else given
            if operand is None and any(c.param == name for c in text.conditions):
                operand = 0  # is not read
            if isinstance(operand, View):
                if operand.dtype not in STORAGE:
                    raise Unserved(f"{operand.dtype} in a kernel")
                tensors.append(given.meta["val"])
                operands.append(operand)
            elif isinstance(operand, bool | int | float | sympy.Expr):
                tensors.append(operand if not isinstance(operand, sympy.Expr) else 1)
                operands.append(Scalar(value=operand))
            else:
                raise Unserved(f"the argument '{name}' is no number and no tensor")
        if value.dtype not in STORAGE:
            raise Unserved(f"{value.dtype} in a kernel")
        compute = value.dtype
        if text.boolean:
            compute, _ = elementwise_dtypes(*tensors, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
        if compute not in STORAGE:
            raise Unserved(f"{compute} in a kernel")
        target = self._new(value)
        self._kernel(node, bound.kernel or "", operands, target, compute)
        return target

    def _call(self, node: fx.Node, overload: str, value: Any) -> Any:
        outputs = [None if v is None else self._new(v) for v in _flat(value)]
        call = bound_call(self._table, overload, _resolved(_named_arguments(node), self._values), outputs, self._served)
        call.names.append(node.name)
        self._instructions.append(call)
        return outputs if isinstance(value, list | tuple) else outputs[0]

    def _island(self, node: fx.Node, value: Any, reason: str) -> Any:
        target = node.target
        assert isinstance(target, torch._ops.OpOverload)
        flat = _flat(value)
        outputs = [None if not isinstance(v, torch.Tensor) else _view(Root(kind=RootKind.ISLAND), v, 0) for v in flat]
        self._instructions.append(
            island(target, node.name, _resolved(_named_arguments(node), self._values), outputs, reason)
        )
        return outputs if isinstance(value, list | tuple) else outputs[0] if outputs else None

    def _result(self, node: Any) -> Result:
        if node is None:
            return Result(kind="nothing")
        if not isinstance(node, fx.Node):
            return Result(kind="number", value=dim(node))
        value = self._values[node]
        if value is None:
            return Result(kind="nothing")
        if not isinstance(value, View):
            return Result(kind="number", value=value)
        for index, placeholder in enumerate(self._placeholders):
            if self._values[placeholder] is value:
                return Result(kind="argument", value=index)
        if value.root.kind is RootKind.ARENA:
            value.root.kind = RootKind.OUTPUT
        return Result(kind="view", value=value)


def _device_of(graph: fx.Graph) -> torch.device:
    for node in graph.nodes:
        for tensor in _tensors(node.meta.get("val")):
            if tensor.device.type == torch._C._get_privateuse1_backend_name():
                return tensor.device
    raise Unsupported("nothing in the graph is on the device")


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, torch.Tensor):
            yield item


def _flat(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def _unbacked(tensor: torch.Tensor) -> bool:
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    return bool(free_unbacked_symbols(tensor))


def _is_view(target: torch._ops.OpOverload) -> bool:
    returns = target._schema.returns
    return bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)


def _mutates(target: torch._ops.OpOverload) -> bool:
    return any(a.alias_info is not None and a.alias_info.is_write for a in target._schema.arguments)


def _view(root: Root, value: torch.Tensor, offset: Dim) -> View:
    return View(
        root=root,
        dtype=value.dtype,
        sizes=tuple(dim(size) for size in value.size()),
        strides=tuple(dim(stride) for stride in value.stride()),
        offset=offset,
    )


def _view_of(base: View, fake: torch.Tensor, value: torch.Tensor) -> View:
    """The view of a node whose result shares the memory of another node's."""
    if value.element_size() != fake.element_size():
        raise Unsupported("a view of another width of elements")
    return _view(base.root, value, base.offset + dim(value.storage_offset()) - dim(fake.storage_offset()))


def _named_arguments(node: fx.Node) -> dict[str, Any]:
    """The arguments by the schema's names, defaults filled in."""
    assert isinstance(node.target, torch._ops.OpOverload)
    named: dict[str, Any] = {}
    for index, formal in enumerate(node.target._schema.arguments):
        if index < len(node.args) and not formal.kwarg_only:
            named[formal.name] = node.args[index]
        else:
            named[formal.name] = node.kwargs.get(formal.name, formal.default_value)
    return named


def _resolved(named: dict[str, Any], values: dict[fx.Node, Any]) -> dict[str, Any]:
    """Nodes replaced by what they are in the program."""
    return {name: fx.node.map_arg(value, lambda node: values[node]) for name, value in named.items()}


def _given(source: list[Any], named: dict[str, Any]) -> Any:
    match source:
        case ["arg", name]:
            return named[name]
        case ["literal", value]:
            return float(value) if isinstance(value, str) else value
        case ["absent"]:
            return None
        case ["derive", ["number", text]]:
            return float(text)
        case ["derive", ["-", ["number", text]]]:
            return -float(text)
        case ["derive", ["text", text]]:
            return text
        case _:
            raise Unserved("an argument that only the eager operator derives")


def _holds(equals: str | None, source: list[Any], named: dict[str, Any]) -> bool:
    """Whether a condition of a kernel holds."""
    given = _given(source, named) if source[0] != "literal" else source[1]
    if equals is None:
        return given is not None
    rounding = {"RoundModeNone": None, "RoundModeTrunc": "trunc", "RoundModeFloor": "floor"}
    if equals in rounding:
        return bool(given == equals if source[0] == "literal" else given == rounding[equals])
    if equals.startswith("Reduction"):
        return bool(given == ["ReductionNone", "ReductionMean", "ReductionSum"].index(equals))
    return bool(given == equals)
