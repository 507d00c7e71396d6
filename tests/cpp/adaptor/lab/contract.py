"""The contract of the lab: the small one and every role more, as plainly as a call needs it."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from diopigen.model.op import Function, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import Fixed, Promote, Var
from tests.unit.vendor.small_project import OPS as SMALL
from tests.unit.vendor.small_project import small_contract

OPS = Path(__file__).parent / "ops"
PRIMITIVES = ("diopiCastDtype", "diopiCopyInp")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One tensor parameter."""

    name: str  # e.g. "input"
    role: Role
    many: bool  # a list
    optional: bool  # of the entries where it is a list
    scratch: bool  # an input whose handle is mutable
    dtypes: tuple[str, ...]  # e.g. ("float32", "float64"): what the schema lets it be
    fixed: bool  # its dtype is said by the schema
    like: str | None  # of an allocated one: the input whose dtype it has


@dataclass(frozen=True, slots=True)
class Signature:
    """One function's tensors, in C order."""

    symbol: str
    op: str
    parameters: tuple[Parameter, ...]

    def parameter(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)


@cache
def lab_contract() -> Program:
    return small_contract(SMALL, OPS)


@cache
def signatures() -> dict[str, Signature]:
    """Every function that conversions apply to."""
    return {
        f.symbol: Signature(f.symbol, f.op, tuple(_parameter(f, p) for p in f.params if p.tensor is not None))
        for f in lab_contract().functions
        if f.symbol not in PRIMITIVES
    }


@cache
def words() -> tuple[str, ...]:
    """The dtypes by their values in the contract."""
    return tuple(t.word for t in sorted(lab_contract().dtypes.types, key=lambda t: t.value))


def _parameter(function: Function, param: Param) -> Parameter:
    tensor = param.tensor
    assert tensor is not None
    element = tensor.element
    if isinstance(element, Fixed):
        dtypes = [element.dtype]
    else:
        assert isinstance(element, Var | Promote)
        variables = element.elements if isinstance(element, Promote) else (element,)
        dtypes = [d for v in variables if isinstance(v, Var) for d in dict(function.elements)[v.name].members]
    sources = [
        p.name
        for p in function.ins
        if p.tensor is not None and p.tensor.element == element and p.tensor.count is None and not p.tensor.optional
    ]
    return Parameter(
        name=param.name,
        role=param.role,
        many=tensor.count is not None,
        optional=tensor.optional,
        scratch=param.role is Role.IN and param.c == "diopiTensorHandle_t",
        dtypes=tuple(dict.fromkeys(d.word for d in dtypes)),
        fixed=isinstance(element, Fixed),
        like=sources[0] if sources and param.role is Role.CALLEE_OUT and not isinstance(element, Fixed) else None,
    )
