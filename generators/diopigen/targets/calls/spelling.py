"""How C++ spells the arguments of an ATen operator from a function's C parameters."""

from typing import assert_never

from diopigen.c_spelling import c_text
from diopigen.model.aten import (
    Always,
    AtenArg,
    Condition,
    Default,
    DtypeOf,
    Equals,
    Feed,
    FromParam,
    IntoParam,
    Raised,
    SameRank,
    Wanted,
)
from diopigen.model.op import Function, Literal, Param
from diopigen.model.type import ENUMERATORS, TensorType, Value, ValueType

_WORDS = {
    "None": "std::nullopt",
    "True": "true",
    "False": "false",
    "Mean": "at::Reduction::Mean",
    "contiguous_format": "at::MemoryFormat::Contiguous",
    "long": "at::kLong",
}
_OF_NUMBER = {"int": "toLong", "SymInt": "toLong", "float": "toDouble", "bool": "toBool"}


def argument(function: Function, arg: AtenArg, feed: Feed, *, wide: bool) -> str:
    """e.g. `tensor(input)`, or `wide(input)`; a conversion that has the name of a parameter is named in full."""
    spelled = _argument(function, arg, feed, wide)
    name, bracket, _ = spelled.partition("(")
    return f"diopi::aten::{spelled}" if bracket and function.param(name) is not None else spelled


def _argument(function: Function, arg: AtenArg, feed: Feed, wide: bool) -> str:
    match feed:
        case FromParam():
            param = function.param(feed.name)
            assert param is not None
            return _from_param(param, arg, wide)
        case Raised():
            return f"raised({feed.name}, {feed.out})"
        case IntoParam():
            param = function.param(feed.name)
            assert param is not None
            return f"into({feed.name})" if arg.type == "Tensor" else _tensor(param, arg, wide=False)
        case DtypeOf():
            return f"scalar_type({feed.name})"
        case SameRank():
            return f"same_rank({feed.out}, {feed.input})"
        case Wanted():
            asked = ", ".join(f"{name} != nullptr" for name in feed.names)
            return f"std::array<bool, {len(feed.names)}>{{{asked}}}"
        case Always():
            return _always(arg, feed.value)
        case Default():
            return _default(arg)
        case other:
            assert_never(other)


def _from_param(param: Param, arg: AtenArg, wide: bool) -> str:
    kind = param.type
    if isinstance(kind, TensorType):
        return _tensor(param, arg, wide)
    if kind.many:
        return _list(param, kind, arg)
    if kind.value is Value.SCALAR:
        return _scalar(param, kind, arg)
    return _value(param, kind, arg)


def _tensor(param: Param, arg: AtenArg, wide: bool) -> str:
    kind = param.type
    assert isinstance(kind, TensorType)
    if kind.count is not None:
        return f"{'maybe_tensors' if arg.type == 'Tensor?[]' else 'tensors'}({param.name}, {kind.count})"
    return f"{'maybe_' if arg.type.endswith('?') else ''}{'wide' if wide else 'tensor'}({param.name})"


def _list(param: Param, kind: ValueType, arg: AtenArg) -> str:
    plain = arg.type.partition("[")[0]
    maybe = "maybe_" if arg.type.endswith("?") and kind.optional else ""
    return f"{maybe}symints({param.name})" if plain == "SymInt" else f"{maybe}ints({param.name})"


def _scalar(param: Param, kind: ValueType, arg: AtenArg) -> str:
    """A number goes where a tensor, a number or a plain value is asked for."""
    plain = arg.type.rstrip("?")
    if plain == "Tensor":
        return f"number_tensor({param.name})"
    if plain in _OF_NUMBER:
        return f"number({param.name}).{_OF_NUMBER[plain]}()"
    if arg.type.endswith("?"):
        return f"maybe_number({param.name})"
    if kind.optional and arg.default is not None:
        return f"maybe_number({param.name}).value_or({arg.default})"
    return f"number({param.name})"


def _value(param: Param, kind: ValueType, arg: AtenArg) -> str:
    match kind.value:
        case Value.STR:
            return f"maybe_text({param.name})" if arg.type.endswith("?") else f"text({param.name})"
        case Value.GENERATOR:
            return f"generator({param.name})"
        case Value.ROUND_MODE:
            return f"rounding({param.name})"
        case Value.MEMORY_FORMAT:
            return f"format({param.name})"
        case Value.REDUCTION:
            return f"static_cast<int64_t>({param.name})"
        case _:
            return _plain(param, kind, arg)


def _plain(param: Param, kind: ValueType, arg: AtenArg) -> str:
    if not kind.optional:
        return param.name
    if arg.type.endswith("?"):
        return f"maybe({param.name})"
    return f"*{param.name}" if arg.default is None else f"maybe({param.name}).value_or({_default(arg)})"


def _always(arg: AtenArg, value: Literal) -> str:
    match value:
        case None:
            return "std::nullopt"
        case bool():
            return "true" if value else "false"
        case str():
            return c_text(value)
        case tuple():
            return _numbers(arg, [str(v) for v in value])
        case _:
            return str(value)


def _default(arg: AtenArg) -> str:
    """PyTorch's default in C++; `at::_ops` has none."""
    text = str(arg.default)
    if "[" in arg.type and text != "None":
        return _numbers(arg, _entries(arg, text))
    if text.startswith(("'", '"')):
        return f'"{text[1:-1]}"'
    return _WORDS.get(text, text)


def _entries(arg: AtenArg, text: str) -> list[str]:
    """e.g. ["0", "0"] for `int[2] padding=0`."""
    if text.startswith("["):
        return [entry.strip() for entry in text[1:-1].split(",") if entry.strip()]
    length = arg.type.partition("[")[2].partition("]")[0]
    return [text] * (int(length) if length else 1)


def _numbers(arg: AtenArg, entries: list[str]) -> str:
    """The list lives until the call is done."""
    listed = f"at::IntArrayRef({{{', '.join(entries)}}})" if entries else "at::IntArrayRef()"
    return f"symints({listed})" if arg.type.startswith("SymInt") else listed


def condition(function: Function, needed: Condition) -> str:
    """e.g. `dim == nullptr`."""
    param = function.param(needed.name)
    assert param is not None
    if isinstance(needed, Equals):
        return _equals(param, needed.value)
    if isinstance(param.type, ValueType) and param.type.many and not param.type.optional:
        return f"{param.name}.len {'>' if needed.given else '=='} 0"
    return f"{param.name} {'!=' if needed.given else '=='} nullptr"


def _equals(param: Param, value: Literal) -> str:
    kind = param.type
    assert isinstance(kind, ValueType)
    name = param.name
    if kind.value in ENUMERATORS:
        words = ENUMERATORS[kind.value]
        return f"{name} == {words[value] if isinstance(value, str) else list(words.values())[int(str(value))]}"
    if kind.value is Value.STR:
        return f"text({name}) == {c_text(str(value))}"
    if isinstance(value, tuple):
        return f"ints({name}).equals({{{', '.join(str(v) for v in value)}}})"
    if isinstance(value, bool) and kind.value is Value.BOOL and not kind.optional:
        return name if value else f"!{name}"
    shown = _always(AtenArg(name="", type="", default=None, keyword=False, out=False, mutated=False), _whole(value))
    if kind.value is Value.SCALAR:
        return f"number({name}).equal({shown})"
    return f"maybe({name}).value_or({shown}) == {shown}" if kind.optional else f"{name} == {shown}"


def _whole(value: Literal) -> Literal:
    return int(value) if isinstance(value, float) and value == int(value) else value
