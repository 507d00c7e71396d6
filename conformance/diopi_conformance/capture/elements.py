"""The element types of a captured call: what each variable of the schema stands for, and each tensor's type then."""

from collections.abc import Iterator
from typing import Any

from diopi_conformance.capture.contract_calls import Given, Unmapped
from diopi_conformance.capture.recorder import Tensor
from diopigen.model.op import Form, Function, Op
from diopigen.model.type import Fixed, TensorType, Var, variables_of
from diopigen.passes.contract.elements import Weak, fixed, main_dtype, promote, resolve, variables
from diopigen.vocabulary.dtype import DType, DTypes, Kind

Choice = dict[str, DType | Weak]


def choose(op: Op, function: Function, given: Given, dtypes: DTypes) -> Choice:
    """The type of each variable; tensors that share one and differ have their common type, as PyTorch casts them.

    Raises Unmapped where the schema does not allow it.
    """
    chosen = _numbers(op, function, given)
    for param in (*function.ins, *function.outs):  # outputs last: they only say what no input says
        if param.tensor is None or not isinstance(param.tensor.element, Var):
            continue
        name = param.tensor.element.name
        for tensor in _tensors(given.get(param.name)):
            dtype = _dtype(tensor, dtypes)
            if name in chosen and param in function.outs:
                continue
            chosen[name] = dtype if name not in chosen else promote(chosen[name], dtype, dtypes)
    for name, allowed in function.elements:
        chosen.setdefault(name, main_dtype(allowed))
    _follow_result(function, given, chosen, dtypes)
    for name, allowed in function.elements:
        choice = chosen[name]
        if isinstance(choice, DType) and choice not in allowed.members:
            raise Unmapped(f"no {choice} in the contract's function")
    return chosen


def _numbers(op: Op, function: Function, given: Given) -> Choice:
    """Of variables whose tensor is a number in this form: the number's kind."""
    found: Choice = {}
    for arg in op.args:
        value = given.get(arg.name)
        if not arg.scalar or not isinstance(arg.type, TensorType) or not isinstance(value, bool | int | float):
            continue
        if isinstance(arg.type.element, Var) and arg.type.element.name not in dict(variables(function)):
            found[arg.type.element.name] = Weak(kind=_kind(value))
    return found


def _kind(value: bool | int | float) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOL
    return Kind.INTEGER if isinstance(value, int) else Kind.FLOAT


def _follow_result(function: Function, given: Given, chosen: Choice, dtypes: DTypes) -> None:
    """The first result decides: what else a function gives may be kept in a type of the contract's own choice.

    Where it differs, the inputs are cast to its type, as PyTorch does for tensors without dimensions.
    """
    param = next((p for p in function.outs if p.tensor is not None), None)
    if param is None or param.tensor is None or isinstance(param.tensor.element, Fixed):
        return
    element = param.tensor.element
    for tensor in _tensors(given.get(param.name)):
        dtype = _dtype(tensor, dtypes)
        if fixed(resolve(element, chosen, dtypes), dtypes) != dtype:
            chosen.update(dict.fromkeys(variables_of(element), dtype))
        wanted = fixed(resolve(element, chosen, dtypes), dtypes)
        if wanted != dtype:
            raise Unmapped(f"a result of type {tensor.dtype} where the contract has {wanted.word}")


def _tensors(value: Any) -> Iterator[Tensor]:
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Tensor):
            yield entry


def _dtype(tensor: Tensor, dtypes: DTypes) -> DType:
    found = next((t for t in dtypes.types if t.torch == tensor.dtype), None)
    if found is None:
        raise Unmapped(f"no {tensor.dtype} in the contract")
    return found


def elements_word(function: Function, chosen: Choice) -> str:
    """The second word of an id, e.g. "f32" where all agree, "f32-i64" where they differ."""
    names = [str(chosen[name]) for name, _ in variables(function)]
    return names[0] if len(set(names)) == 1 else "-".join(names) or "fixed"


def parameter_dtypes(function: Function, chosen: Choice, dtypes: DTypes) -> dict[str, str]:
    """Of each tensor parameter."""
    return {
        p.name: fixed(resolve(p.tensor.element, chosen, dtypes), dtypes).name
        for p in function.params
        if p.tensor is not None
    }


def forward_dtypes(op: Op, function: Function, chosen: Choice, dtypes: DTypes) -> dict[str, str]:
    """Of each tensor of a backward function's forward; empty for any other function."""
    if function.form is not Form.BACKWARD:
        return {}
    return {
        t.name: fixed(resolve(t.type.element, chosen, dtypes), dtypes).name
        for t in (*op.outs, *op.args)
        if isinstance(t.type, TensorType)
    }
