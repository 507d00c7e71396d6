"""Nodes of Dynamo's graphs as operators of ATen with every argument, however the program spelled them."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import fx
from torch.nn import functional

from dicp.patterns.indexing import example, indexed, is_tensor, turned

# Names of functions, methods and Python's operators that are operators of ATen by another name.
_ALIASES = {
    "and_": "bitwise_and",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "inv": "bitwise_not",
    "invert": "bitwise_not",
    "multiply": "mul",
    "negative": "neg",
    "or_": "bitwise_or",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
    "truediv": "div",
    "xor": "bitwise_xor",
}
_ARGUMENTS = {"input": "self", "axis": "dim", "keepdims": "keepdim", "training": "train"}
_CONVERSIONS = {"to", "type", "type_as", "float", "half", "bfloat16", "double", "_to_copy", "convert_element_type"}
_HOMES = (torch, functional, torch._C._nn)
_PURE = {operator.getitem, getattr}
_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float)
_SYMMETRIC = {"transpose"}  # of its two dimensions
_TURNS = {"t", "numpy_T", "mT"}  # of a matrix; since torch 2.15 Dynamo writes x.T and x.mT so
_WIDENING = {"unsqueeze"}  # whose dimension is one of the result


@dataclass(frozen=True, slots=True)
class Term:
    """An operator over nodes and numbers."""

    op: str  # e.g. "mean"
    args: tuple[Any, ...]  # in the order of the schema; dimensions count from the last
    defaults: tuple[Any, ...]  # what each is where nobody says it


class Terms:
    """The terms of one graph's nodes, each read once."""

    def __init__(self) -> None:
        self._known: dict[fx.Node, Term | None] = {}

    def term(self, node: fx.Node) -> Term | None:
        """None for what is no operator of ATen, or writes its arguments."""
        if node not in self._known:
            self._known[node] = _term(node)
        return self._known[node]

    def resolved(self, value: Any) -> tuple[Any, tuple[fx.Node, ...]]:
        """A value without what changes nothing, and the nodes that were passed by."""
        passed: list[fx.Node] = []
        while isinstance(value, fx.Node) and (source := self._unchanged(value)) is not None:
            passed.append(value)
            value = source
        return value, tuple(passed)

    def _unchanged(self, node: fx.Node) -> fx.Node | None:
        """What a conversion to the dtype that is there already, or a dropout of nothing, is given."""
        term = self.term(node)
        if term is None or not term.args or not isinstance(term.args[0], fx.Node):
            return None
        source = term.args[0]
        if term.op == "cast":
            return source if example(source).dtype == term.args[1] else None
        idle = term.op == "dropout" and (term.args[1] == 0 or term.args[2] is False)
        return source if idle else None


def writes(node: fx.Node) -> bool:
    """Whether a node may change what others read, or how they are computed."""
    if node.op in ("placeholder", "get_attr", "output") or node.target in _PURE:
        return False
    if isinstance(example(node), _NUMBERS):
        return False  # arithmetic of sizes
    name = _name(node)
    return name is None or name.endswith("_") or node.kwargs.get("out") is not None or bool(node.kwargs.get("inplace"))


def _name(node: fx.Node) -> str | None:
    """The operator of ATen that a node calls; None for anything else."""
    name = _written_name(node)
    name = _ALIASES.get(name, name) if name is not None else None
    return name if name is not None and (name in _CONVERSIONS or _schemas(name)) else None


def _written_name(node: fx.Node) -> str | None:
    target = node.target
    if node.op == "call_method":
        name = str(target)  # e.g. "__eq__", which up to torch 2.12 Dynamo writes for ==
        return getattr(operator, name).__name__ if name.startswith("__") and hasattr(operator, name) else name
    if node.op != "call_function":
        return None
    if isinstance(target, torch._ops.OpOverload):
        return target._schema.name.split("::")[1]
    if isinstance(target, torch._ops.OpOverloadPacket):
        return target.__name__
    name = getattr(target, "__name__", "")
    if getattr(target, "__module__", None) == "_operator":
        return None if name.startswith("i") and hasattr(operator, name[1:]) else name
    return name if any(getattr(home, name, None) is target for home in _HOMES) else None


def _term(node: fx.Node) -> Term | None:
    if node.target is operator.getitem or node.target is getattr:
        found = indexed(node)
        return None if found is None else Term(*found)
    name = _name(node)
    if name is None or writes(node):
        return None
    value = example(node)
    if name in _CONVERSIONS:
        return _cast(node, value)
    if name in _TURNS and isinstance(node.args[0], fx.Node) and (name == "mT" or example(node.args[0]).dim() == 2):
        return Term(*turned(node.args[0]))
    kwargs = {key: given for key, given in node.kwargs.items() if key not in _SPARE}
    args = node.args[:2] + node.args[3:] if name in _STACKED and node.target in _STACKED.values() else node.args
    for lenient in (False, True):
        for schema in _schemas(name):
            bound = _bound(schema, args, kwargs, lenient)
            if bound is not None:
                return Term(name, _counted(name, schema, bound), tuple(formal.default for formal in schema))
    return None


_SPARE = {"inplace", "_stacklevel"}
# Functions whose third argument is none of the operator's.
_STACKED: dict[str, Callable[..., Any]] = {"softmax": functional.softmax, "log_softmax": functional.log_softmax}


@dataclass(frozen=True, slots=True)
class _Formal:
    name: str
    tensor: bool
    dims: bool  # dimensions of the first argument
    many: bool  # a list of integers
    keyword: bool
    default: Any
    required: bool


@cache
def _schemas(name: str) -> tuple[tuple[_Formal, ...], ...]:
    """The overloads of an operator that write nothing."""
    found = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    writes_none = [s for s in found if not any(a.alias_info is not None and a.alias_info.is_write for a in s.arguments)]
    kept = writes_none if not name.endswith("_") else found
    return tuple(tuple(map(_formal, schema.arguments)) for schema in kept)


def _formal(argument: Any) -> _Formal:
    written = str(argument.type)
    return _Formal(
        name=argument.name,
        tensor=written == "Tensor",
        dims=argument.name in ("dim", "dims", "dim0", "dim1") and "int" in written,
        many="List[int]" in written,
        keyword=argument.kwarg_only,
        default=argument.default_value,
        required=not argument.has_default_value(),
    )


def _bound(
    schema: tuple[_Formal, ...], args: tuple[Any, ...], kwargs: dict[str, Any], lenient: bool
) -> list[Any] | None:
    """The arguments in the schema's order; None where they do not fit it. `lenient` takes numbers for tensors."""
    known = {formal.name for formal in schema}
    kwargs = {key if key in known else _ARGUMENTS.get(key, key): value for key, value in kwargs.items()}
    places = [formal for formal in schema if not formal.keyword]
    given = list(args)
    at = next((i for i, formal in enumerate(places) if formal.many), None)
    if at is not None and len(given) > at and all(_is_whole(value) for value in given[at:]):
        given[at:] = [given[at:]]  # e.g. permute(0, 2, 1)
    if len(given) > len(places) or not kwargs.keys() <= {formal.name for formal in schema[len(given) :]}:
        return None
    named = {**{formal.name: value for formal, value in zip(places, given, strict=False)}, **kwargs}
    if any(formal.required and formal.name not in named for formal in schema):
        return None
    bound = [named.get(formal.name, formal.default) for formal in schema]
    if not lenient and any(formal.tensor and not is_tensor(v) for formal, v in zip(schema, bound, strict=True)):
        return None
    return bound


def _is_whole(value: Any) -> bool:
    if isinstance(value, fx.Node):
        return isinstance(example(value), torch.SymInt | int)
    return isinstance(value, int) and not isinstance(value, bool)


def _counted(name: str, schema: tuple[_Formal, ...], bound: list[Any]) -> tuple[Any, ...]:
    """Dimensions counted from the last, one as a list of one; no dtype where it is that of the source."""
    source: Any = bound[0] if bound else None
    if not is_tensor(source):
        return tuple(bound)
    rank = example(source).dim() + (name in _WIDENING)

    def counted(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return counted(value[0]) if len(value) == 1 else [counted(item) for item in value]
        return value - rank if isinstance(value, int) and value >= 0 else value

    found = [counted(value) if formal.dims else value for formal, value in zip(schema, bound, strict=True)]
    found = [
        None if f.name == "dtype" and v == example(source).dtype else v for f, v in zip(schema, found, strict=True)
    ]
    if name in _SYMMETRIC and all(isinstance(value, int) for value in found[1:3]):
        found[1:3] = sorted(found[1:3])
    return tuple(found)


def _cast(node: fx.Node, value: Any) -> Term | None:
    """A conversion that changes the dtype alone."""
    source = node.args[0] if node.args else None
    if not isinstance(source, fx.Node) or not is_tensor(source) or not isinstance(value, torch.Tensor):
        return None
    rest = [*node.args[1:], *node.kwargs.values()]
    plain = all(isinstance(given, torch.dtype) or is_tensor(given) for given in rest)
    if not plain or example(source).device != value.device:
        return None
    return Term("cast", (source, value.dtype), (None, None))
