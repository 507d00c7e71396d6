"""Which dtype the wrapper gives each tensor of a function, spelled as C++ expressions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from diopigen.model.op import Function, Param, Role
from diopigen.model.type import Accumulate, ComplexOf, Element, Fixed, FloatOf, Promote, RealOf, TensorType, Var
from diopigen.vocabulary.dtype import DType, DTypeSet, Kind


def variables(element: Element) -> Iterator[str]:
    """The variables of `where` that an element depends on, in order."""
    match element:
        case Var():
            yield element.name
        case Fixed():
            return
        case Promote():
            for part in element.elements:
                yield from variables(part)
        case FloatOf() | Accumulate() | ComplexOf() | RealOf():
            yield from variables(element.element)
        case _:
            assert_never(element)


def has_scalar_type(dtype: DType) -> bool:
    """Whether torch has tensors of this dtype."""
    return dtype.scalar_type is not None


def scalar_type(dtype: DType) -> str:
    """e.g. "at::kBool"."""
    return f"at::k{dtype.scalar_type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The dtypes of one function's tensors in one kind of wrapper.

    With `common`, every variable that the outputs depend on is cast to the C++ variable of that name, as TensorIterator
    would; without it a variable is the dtype of the first input that has it.
    """

    function: Function
    common: str | None  # e.g. "common"
    inplace: bool

    def output(self, param: Param, known: dict[str, str]) -> str | None:
        """The dtype that the function writes to an output; None where a variable of it has no input."""
        assert param.tensor is not None
        return self._spelled(param.tensor.element, known)

    def spelled(self, element: Element) -> str:
        """The dtype of what is computed in the common one."""
        found = self._spelled(element, {})
        assert found is not None
        return found

    def _spelled(self, element: Element, known: dict[str, str]) -> str | None:
        match element:
            case Fixed():
                return scalar_type(element.dtype)
            case Var():
                return self.common or known.get(element.name)
            case Promote():
                parts = [self._spelled(e, known) for e in element.elements]
                found = list(dict.fromkeys(p for p in parts if p is not None))
                return found[0] if len(found) == 1 else f"promoted({', '.join(found)})" if found else None
            case FloatOf():
                inner = self._spelled(element.element, known)
                return inner and f"float_type({inner})"
            case Accumulate():
                inner = self._spelled(element.element, known)
                return inner and f"sum_type({inner})"
            case ComplexOf():
                inner = self._spelled(element.element, known)
                return inner and f"complex_type({inner})"
            case RealOf():
                inner = self._spelled(element.element, known)
                return inner and f"real_type({inner})"
            case _:
                assert_never(element)

    def linked(self) -> frozenset[str]:
        """The variables whose tensors are cast to one dtype: those of the outputs, or all when those have none."""
        written = [
            p.tensor.element for p in self.function.params if p.tensor is not None and p.role in (Role.OUT, Role.INOUT)
        ]
        found = {v for e in written for v in variables(e)}
        return frozenset(found or {v for v, _ in self.function.elements})


def floats_only(function: Function) -> bool:
    """Every tensor may hold floats, so that the fast path, which floats alone take, is right for it."""
    sets = dict(function.elements)
    for param in function.params:
        if isinstance(param.type, TensorType) and param.role in (Role.IN, Role.INOUT):
            element = param.type.element
            if not isinstance(element, Var) or not _has_floats(sets, element.name):
                return False
    return True


def writes_floats(function: Function) -> bool:
    """The first tensor that is written is of variables that stand for floats alone."""
    sets = dict(function.elements)
    written = next((p.tensor for p in function.params if p.tensor and p.role in (Role.OUT, Role.INOUT)), None)
    named = set(variables(written.element)) if written is not None else set()
    return bool(named) and all(d.kind is Kind.FLOAT for name in named for d in sets[name].members)


def _has_floats(sets: dict[str, DTypeSet], name: str) -> bool:
    members = sets[name].members if name in sets else ()
    return {d.word for d in members if d.kind is Kind.FLOAT} >= {"float16", "bfloat16", "float32", "float64"}
