"""How a runner calls a C function: each parameter's place, C kind, role and default."""

from diopigen.c_spelling import c_args, c_type
from diopigen.model.op import Function, Op, Param, Role
from diopigen.model.type import ENUMERATORS, TensorType, ValueType
from diopigen.model.vendor import Conversion, FunctionPlan
from diopigen.records.plan import Json, json_value

# How a value travels, by the C type without const and blanks.
_PASSES = {
    "bool": "bool",
    "bool*": "bool*",
    "char*": "str",
    "diopiGeneratorHandle_t": "generator",
    "diopiGeneratorHandle_t*": "generator*",
    "diopiMemoryFormat_t": "enum",
    "diopiReduction_t": "enum",
    "diopiRoundMode_t": "enum",
    "diopiScalar_t*": "scalar",
    "diopiScalar_t": "scalar_value",
    "diopiSize_t": "size",
    "diopiSize_t*": "size*",
    "double": "double",
    "double*": "double*",
    "float": "float",
    "float*": "float*",
    "int": "int32",
    "int32_t": "int32",
    "int64_t": "int64",
    "int64_t*": "int64*",
    "void*": "pointer",
}


def params(function: Function, plan: FunctionPlan | None) -> list[Json]:
    """The parameters in C order, the context left out, counts included, each with what the vendor's `plan` casts."""
    described: list[Json] = []
    lists = {p.type.count: p.name for p in function.params if isinstance(p.type, TensorType) and p.type.count}
    for c_arg in c_args(function)[1:]:
        if c_arg.param is None:
            described.append({"name": c_arg.name, "pass": "count", "of": lists[c_arg.name]})
        else:
            described.append(_param(c_arg.param, None if plan is None else plan.conversion(c_arg.param.name)))
    return described


def _param(param: Param, conversion: Conversion | None) -> Json:
    entry: dict[str, Json] = {"name": param.name, "pass": _passing(param), "role": param.role.value}
    if param.arg != param.name:
        entry["arg"] = param.arg
    if param.type.optional:
        entry["optional"] = True
    if param.has_default:
        entry["default"] = json_value(param.default)
    if conversion is not None and conversion.casts:
        entry["casts"] = {cast.source.name: cast.target.name for cast in conversion.casts}
    if isinstance(param.type, ValueType):
        if param.type.length is not None:
            entry["length"] = param.type.length
        if param.type.value in ENUMERATORS:
            entry["enumerators"] = list(ENUMERATORS[param.type.value])
        entry["type"] = str(param.type)
    return entry


def _passing(param: Param) -> str:
    if isinstance(param.type, TensorType):
        if param.type.count is not None:
            return "tensors"
        return "tensor*" if param.role is Role.CALLEE_OUT else "tensor"
    plain = c_type(param).replace("const ", "").replace(" ", "")
    if plain in _PASSES:
        return _PASSES[plain]
    # Another spelling of a number, as wide as the machine has it; any other type has no case that would pass it.
    return ("int64" if "long" in plain or "64" in plain else "int32") if param.usual_in_c else "pointer"


def backward_sources(op: Op) -> Json:
    """Where a backward function takes its tensors from: gradients of which outputs, kept from what."""
    block = op.backward
    if block is None:
        return None
    return {
        "grad_outputs": {param: out for param, out in block.grad_outputs},
        "keeps": {keep.name: keep.source for keep in block.keeps},
        "grads": {f"grad_{arg}": arg for arg, _ in block.grads},
    }
