"""own_operators.json: the operators that only one vendor has, as torch_dipu makes them operators of torch."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnParam:
    """One C parameter after the context."""

    name: str
    passing: str  # "tensor", "size", "scalar", "str", or a number's C type, e.g. "int64_t"
    element: str = ""  # of a tensor: its variable or dtype. e.g. "T", "int64"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnResult:
    """An output that is allocated for the function."""

    shapes: tuple[str, ...]  # the tensors whose shapes, broadcast, it has
    dtype: str  # of torch, e.g. "int64"; empty: that of the tensors with the same variable


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOperator:
    """One function as an operator."""

    schema: str  # e.g. "gap(Tensor input, Tensor other) -> Tensor"
    symbol: str  # e.g. "diopiGap"
    params: tuple[OwnParam, ...]
    results: dict[str, OwnResult] = field(default_factory=dict)  # by parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOperators:
    vendor: str
    operators: tuple[OwnOperator, ...]
    version: int = 1
