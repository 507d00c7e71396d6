"""What torch's own schema of an overload says: its names, what it writes, whether it is a view or random."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch._ops import OpOverload

# What makes memory without writing it, points tensors elsewhere, or tells a stream of them.
_NO_ELEMENTS = frozenset(
    (
        *("empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided"),
        *("resize_", "resize_as_", "set_", "record_stream", "is_pinned", "_pin_memory", "pin_memory", "is_same_size"),
    )
)
_OWN = frozenset({"aten", "prims"})  # namespaces of operators that do nothing but what their schema says
_VALUES = frozenset({"Tensor", "number", "int", "float", "bool", "complex", "Device", "Generator"})
# Texts that choose a way to compute; others may name a file, or whatever an operator makes of them.
_MODES = frozenset(
    (
        *("activation", "algorithm", "approximate", "driver", "equation", "indexing", "interpolation", "mode", "norm"),
        *("ord", "p", "pad_mode", "padding", "padding_side", "reduce", "rounding_mode", "side", "UPLO"),
    )
)
# Operators of these namespaces speak with other processes, which would wait for a second call.
_COLLECTIVE = frozenset({"c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "symm_mem"})
_SCRATCH = frozenset({"workspace", "reserve", "reserveSpace"})
# Results that are a device's own, for its backward function.
_PRIVATE = {"aten.mkldnn_rnn_layer": 3, "aten._thnn_fused_lstm_cell": 2, "aten._thnn_fused_gru_cell": 1}
# The old names of batch normalization change the running statistics, which torch's schema keeps to itself.
_STATISTICS = frozenset({"running_mean", "running_var"})
_WRITES_STATISTICS = frozenset({"aten.native_batch_norm", "aten.batch_norm_gather_stats_with_counts"})


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One overload of one operator."""

    function: OpOverload
    name: str  # e.g. "aten.add.Tensor"
    packet: str  # e.g. "aten.add"
    base: str  # e.g. "add"
    arguments: tuple[str, ...]  # in order, those that are keywords only last
    written: frozenset[str]  # arguments that the call changes, e.g. {"self"}, {"out"}
    scratch: frozenset[str]  # arguments that a device uses as it likes, e.g. {"workspace"}
    private: str  # the result that is of use to the same device only, e.g. "result[3]"; or ""
    aliases: bool  # a result may share an argument's memory without being written
    computes: bool  # elements come out that depend on the arguments
    random: bool  # results come from a generator

    @property
    def repeatable(self) -> bool:
        """It can be run once more or elsewhere, and there is a result to look at."""
        return self.computes and not self.aliases and self.function.namespace not in _COLLECTIVE

    def given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments that were given, by name and in the schema's order."""
        return {**dict(zip(self.arguments, args, strict=False)), **kwargs}


@cache
def overload_of(function: OpOverload) -> Overload:
    """What is known of `function`, e.g. torch.ops.aten.add.Tensor."""
    schema = function._schema
    packet = f"{function.namespace}.{schema.name.rpartition('::')[2]}"
    written = {arg.name for arg in schema.arguments if arg.alias_info is not None and arg.alias_info.is_write}
    names = tuple(arg.name for arg in schema.arguments)
    if packet in _WRITES_STATISTICS:
        written |= _STATISTICS.intersection(names)
    shares = (r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)
    return Overload(
        function=function,
        name=str(function),
        packet=packet,
        base=packet.rpartition(".")[2],
        arguments=names,
        written=frozenset(written),
        scratch=_SCRATCH.intersection(names),
        private=f"result[{_PRIVATE[packet]}]" if packet in _PRIVATE else "",
        computes=_has_tensors(schema)
        and not (packet.startswith("aten.") and packet.removeprefix("aten.") in _NO_ELEMENTS),
        aliases=function.is_view or any(shares) or packet == "aten._unsafe_view",
        random=torch.Tag.nondeterministic_seeded in function.tags,
    )


def beyond_tensors(function: OpOverload) -> str:
    """Why an operator may do more than compute tensors from tensors and numbers; empty where it does no more.

    e.g. "its argument 'filename' is neither a tensor nor a number" of aten.from_file
    """
    if function.namespace not in _OWN:
        return "it is not one of torch's own operators"
    for argument in function._schema.arguments:
        kind = re.sub(r"Optional|List|\[|\]", "", str(argument.type))
        if kind not in _VALUES and not (kind == "str" and argument.name in _MODES):
            return f"its argument '{argument.name}' is neither a tensor nor a number"
    return "" if _has_tensors(function._schema) else "it has nothing to do with tensors"


def _has_tensors(schema: Any) -> bool:
    return any("Tensor" in str(part.type) for part in (*schema.arguments, *schema.returns))
