"""The plan that the generator wrote, as values: functions, their parameters, and cases."""

import hashlib
import json
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from diopigen.atomic import MALFORMED
from diopigen.records.codec import typed
from diopigen.records.plan import PLAN_VERSION, number


class PlanError(Exception):
    """The plan cannot be used; the text says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One C parameter after the context."""

    name: str  # e.g. "grad_input"
    passing: str  # e.g. "tensor", "tensors", "count", "scalar", "size*"
    role: str = "in"  # in, out, inout, new, host
    arg: str = ""  # e.g. "save_mean": what of the op it carries
    optional: bool = False
    default: Any = None
    of: str = ""  # of a count: the list that it counts
    length: int | None = None  # e.g. 2 of "int[2]"
    enumerators: tuple[str, ...] = ()
    type: str = ""  # e.g. "Scalar", of values
    casts: dict[str, str] = field(default_factory=dict)  # e.g. {"f64": "f32"}: what the vendor computes in instead

    def computed(self, dtype: str) -> str:
        """The dtype in which a tensor of `dtype` reaches the vendor's code."""
        return self.casts.get(dtype, dtype)

    @property
    def is_tensor(self) -> bool:
        return self.passing in ("tensor", "tensors", "tensor*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of an overload of ATen: a parameter, a value that is always the same, or an output."""

    name: str
    type: str = ""  # e.g. "Tensor?", as ATen spells it; empty for outputs
    param: str | None = None
    value: Any = None
    out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An overload of ATen that computes what a function should."""

    overload: str  # e.g. "add.Tensor"
    args: tuple[Argument, ...]
    returns: dict[str, int]  # parameter: which result it is
    writes: dict[str, str]  # parameter: the argument that is written
    absent: tuple[str, ...]  # parameters that it cannot take
    constants: dict[str, Any]  # parameter: the only value that it computes with
    require: dict[str, Any]  # parameter: the same, of enumerators also by number


@dataclass(frozen=True, slots=True, kw_only=True)
class Backward:
    """How a backward function follows from its forward, by names of parameters: own first."""

    grad_outputs: dict[str, str]
    keeps: dict[str, str | None]
    grads: dict[str, str]


_NO_BACKWARD = Backward(grad_outputs={}, keeps={}, grads={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One C symbol, how to call it and how to judge it."""

    symbol: str
    word: str  # e.g. "add_inp_scalar": the symbol in the ids of cases
    op: str
    topic: str
    form: str  # out, inplace, scalar, inplace_scalar, backward
    params: tuple[Param, ...]
    check: str
    tolerance: dict[str, tuple[float, float]]  # dtype: relative, absolute
    data: dict[str, str]  # argument: how its values are drawn
    references: tuple[Reference, ...]
    elementwise: bool = False
    plain: str = ""  # the symbol of the op's out form
    backward: Backward = _NO_BACKWARD

    def param(self, name: str) -> Param:
        return next(p for p in self.params if p.name == name)

    def recipe(self, param: "Param", case: "Case") -> str:
        """How the values of a parameter are drawn in `case`; empty where as usual."""
        drawn = {**self.data, **case.data}
        return drawn.get(param.arg) or drawn.get(param.name) or ""

    @property
    def written(self) -> tuple[Param, ...]:
        """What the function writes, host values included."""
        return tuple(p for p in self.params if p.role != "in" and p.passing != "count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call of one function.

    The axes that a case takes at another value than the usual one are words of its id, in this order.
    """

    id: str  # e.g. "convolution2d/f16/nhwc/strided/2", "linear/f32/model/12"
    function: str
    dtypes: dict[str, str]  # tensor parameter: dtype
    values: dict[str, Any]  # argument: shape, shapes or value
    data: dict[str, str] = field(
        default_factory=dict
    )  # argument: how its values are drawn, if not as the function says
    forward: dict[str, str] = field(default_factory=dict)  # of backward functions: dtypes of the plain form
    layout: str = ""  # e.g. "nhwc": the memory order of the tensors that have such a rank; empty for the usual one
    view: str = "contiguous"  # e.g. "strided": how tensors lie in their storage
    fill: str = ""  # e.g. "special": which values are drawn; empty for the usual ones
    change: str = ""  # e.g. "zero": what was done to the row; empty for nothing
    models: tuple[str, ...] = ()  # e.g. ("resnet18",): whose training step makes this call; empty for rows of a schema
    seed: int = 0  # of the run: other numbers in the same case

    @property
    def elements(self) -> str:
        """e.g. "f32", "f32-i64": the second word of the id."""
        return self.id.split("/")[1]

    @property
    def largest(self) -> int:
        """Elements of the largest tensor among its inputs, lists taken as one."""
        tensors = self.dtypes.keys() | self.forward.keys()
        return max((_numel(value) for name, value in self.values.items() if name in tensors), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePlan:
    vendor: str
    dtypes: dict[str, tuple[int, int, str]]  # name: enumerator, bytes, kind
    functions: dict[str, Function]
    cases: tuple[Case, ...]
    digest: str = ""  # of the text that it was read from

    def dtype_name(self, value: int) -> str:
        """The dtype with this enumerator."""
        return next((n for n, (v, _, _) in self.dtypes.items() if v == value), f"dtype {value}")


def _numel(value: Any) -> int:
    """Of a shape or a list of shapes; 0 for anything else."""
    if not isinstance(value, list):
        return 0
    if any(isinstance(entry, list) for entry in value):
        return sum(_numel(entry) for entry in value)
    return prod(value) if all(isinstance(size, int) for size in value) else 0


def read_plan(path: Path) -> CasePlan:
    """Raises PlanError if there is no plan, or one of another version."""
    try:
        text = path.read_bytes()
        return plan_of(json.loads(text), hashlib.sha256(text).hexdigest())
    except FileNotFoundError:
        made = "diopigen all --only conformance --vendor V"
        raise PlanError(f"there is no plan at {path}; write it with '{made}'") from None
    except OSError as error:
        raise PlanError(f"{path} cannot be read: {error.strerror}") from None
    except MALFORMED as error:
        raise PlanError(f"{path} is damaged ({error}); write it again with 'diopigen all --only conformance'") from None


def plan_of(document: dict[str, Any], digest: str = "") -> CasePlan:
    """The plan in a parsed plan.json. Raises PlanError, or one of MALFORMED."""
    if document.get("version") != PLAN_VERSION:
        raise PlanError("the plan is of another version; write it again with 'diopigen all --only conformance'")
    functions = {symbol: _function(symbol, entry) for symbol, entry in document["functions"].items()}
    cases = [_case(entry) for entry in document["cases"]]
    plan = typed(CasePlan, {**document, "functions": functions, "cases": cases, "digest": digest})
    for function in plan.functions.values():
        _check_function(function, plan)
    for case in plan.cases:
        _check_case(case, plan)
    return plan


def _check_function(function: Function, plan: CasePlan) -> None:
    """Raises ValueError where it names what the plan does not have."""
    names = {param.name for param in function.params}
    for param in function.params:
        if param.of and param.of not in names:
            raise ValueError(f"'{param.name}' of '{function.symbol}' counts '{param.of}', which is no parameter")
    if function.plain and function.plain not in plan.functions:
        raise ValueError(f"'{function.symbol}' needs the function '{function.plain}', which does not exist")
    backward = function.backward
    own = [*backward.grad_outputs, *backward.keeps, *backward.grads]
    for reference in function.references:
        own += [*reference.returns, *reference.writes, *reference.constants, *reference.require]
        own += [argument.param for argument in reference.args if argument.param is not None]
    forward = {param.name for param in plan.functions[function.plain].params} if function.plain else set()
    of_forward = [*backward.grad_outputs.values(), *filter(None, backward.keeps.values()), *backward.grads.values()]
    for symbol, wanted, found in ((function.symbol, own, names), (function.plain, of_forward, forward)):
        if unknown := [name for name in wanted if name not in found]:
            raise ValueError(f"'{symbol}' has no parameter '{unknown[0]}'")


def _check_case(case: Case, plan: CasePlan) -> None:
    """Raises ValueError where it names what the plan does not have."""
    function = plan.functions.get(case.function)
    if function is None:
        raise ValueError(f"there is no function '{case.function}'")
    if "/" not in case.id:
        raise ValueError(f"the case '{case.id}' does not name its elements")
    of_forward = plan.functions[function.plain].params if function.plain else ()
    for dtypes, params in ((case.dtypes, function.params), (case.forward, of_forward)):
        tensors = {param.name for param in params if param.is_tensor}
        for name, dtype in dtypes.items():
            if name not in tensors:
                raise ValueError(f"'{name}' of the case '{case.id}' is no tensor of the function")
            if dtype not in plan.dtypes:
                raise ValueError(f"'{name}' of the case '{case.id}' is of no dtype")
            if not _is_shape(case.values.get(name)):
                raise ValueError(f"'{name}' of the case '{case.id}' has no shape")


def _is_shape(value: Any) -> bool:
    """Whether this may be the shape of a tensor, or the shapes of several, as far as a plan gives them."""
    if not isinstance(value, list):
        return value is None
    return all(type(size) is int and size >= 0 for size in value) or all(map(_is_shape, value))


def _function(symbol: str, entry: dict[str, Any]) -> dict[str, Any]:
    params = [_param(param) for param in entry["params"]]
    return {**entry, "symbol": symbol, "params": params}


def _param(entry: dict[str, Any]) -> dict[str, Any]:
    return {"arg": entry["name"], **entry, "passing": entry["pass"], "default": number(entry.get("default"))}


def _case(entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "values": {name: number(value) for name, value in entry["values"].items()}}
