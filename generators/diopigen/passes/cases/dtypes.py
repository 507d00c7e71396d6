"""The element types of a case's tensors, from the choice of its variables and the numbers of its row."""

from collections.abc import Iterable

from diopigen.model.op import Arg, CaseRow, Op, Param
from diopigen.model.type import Fixed, TensorType, Var
from diopigen.passes.contract.elements import Environment, Weak, castable, fixed, resolve
from diopigen.vocabulary.dtype import DType, DTypes, Kind


def tensor_dtypes(tensors: Iterable[Param | Arg], chosen: Environment, dtypes: DTypes) -> tuple[tuple[str, DType], ...]:
    """The type of each tensor by name."""
    return tuple(
        (t.name, fixed(resolve(t.type.element, chosen, dtypes), dtypes))
        for t in tensors
        if isinstance(t.type, TensorType)
    )


def with_numbers(op: Op, row: CaseRow, choice: dict[str, DType]) -> Environment:
    """The choice, and for variables of tensors that the row replaces by a number, the number's kind."""
    chosen: Environment = dict(choice)
    given = dict(row.values)
    for arg in op.args:
        if not arg.scalar or not isinstance(arg.type, TensorType) or not isinstance(arg.type.element, Var):
            continue
        value = given.get(arg.name)
        if isinstance(value, bool | int | float) and arg.type.element.name not in choice:
            chosen[arg.type.element.name] = Weak(kind=_kind(value))
    return chosen


def fits(op: Op, chosen: Environment, dtypes: DTypes) -> bool:
    """Whether the plain form's result may be written into the tensor that an in-place form overwrites."""
    target = next((arg.type for arg in op.args if isinstance(arg.type, TensorType)), None)
    if target is None or not op.outs or not isinstance(op.outs[0].type, TensorType):
        return True
    result = resolve(op.outs[0].type.element, chosen, dtypes)
    if isinstance(op.outs[0].type.element, Fixed):
        return True  # comparisons and tests: the in-place forms write 0 and 1 in the tensor's own type
    return castable(result, fixed(resolve(target.element, chosen, dtypes), dtypes))


def _kind(value: bool | int | float) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOL
    return Kind.INTEGER if isinstance(value, int) else Kind.FLOAT
