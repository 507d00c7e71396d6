"""The operators that only the vendor has, as operators of torch: torch.ops.<vendor>.<operator>.

They come with the vendor's library, beside which own_operators.json describes them.
"""

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from diopigen.records.own_operators import OwnOperator

FILE = "own_operators.json"
_NUMBERS = {
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "bool": ctypes.c_bool,
}
_libraries: list["torch.library.Library"] = []  # registrations end with them


class _Size(ctypes.Structure):
    """diopiSize_t."""

    _fields_ = [("data", ctypes.POINTER(ctypes.c_int64)), ("len", ctypes.c_int64)]


def register(library: Path) -> None:
    """Makes the operators of the vendor's library, which has no file if it has none. Raises ImportError."""
    path = library.parent / FILE
    if not path.exists():
        return
    import torch

    from diopigen.atomic import MALFORMED
    from diopigen.records.codec import read_record
    from diopigen.records.own_operators import OwnOperators

    try:
        found = read_record(OwnOperators, path)
    except (OSError, *MALFORMED) as error:
        raise ImportError(f"{path} cannot be read ({error}); build the vendor's library again") from error
    made = torch.library.Library(found.vendor, "FRAGMENT")
    _libraries.append(made)
    for operator in found.operators:
        name = made.define(operator.schema, tags=(torch.Tag.pt2_compliant_tag,))
        call = _Call(operator, getattr(torch.ops, found.vendor))
        made.impl(name, call, "PrivateUse1")
        made._register_fake(name, call.results)


class _Call:
    """The kernel of one operator."""

    def __init__(self, operator: "OwnOperator", namespace: Any) -> None:
        from torch_dipu import _native

        self._native = _native.load()
        self._operator = operator
        self._namespace = namespace
        self._name, _, self._overload = operator.schema.partition("(")[0].partition(".")
        address = self._native.vendor_symbol(operator.symbol)
        if address == 0:
            raise ImportError(f"the vendor's library lacks {operator.symbol}; build it again")
        self._function = ctypes.CFUNCTYPE(ctypes.c_int)(address)

    def __call__(self, *given: Any, **named: Any) -> Any:
        arguments = self._arguments(given, named)
        self._check(arguments)
        results = self._allocated(arguments)
        tensors = [value for value in arguments.values() if _is_tensor(value)]
        context = self._native.Context(tensors[0].device.index)
        kept = [self._passed(p.passing, {**arguments, **results}[p.name]) for p in self._operator.params]
        status = self._function(ctypes.c_void_p(context.address), *(value for value, _ in kept))
        context.require_success(status, self._operator.symbol)
        return _returned(results)

    def results(self, *given: Any, **named: Any) -> Any:
        """What the operator returns, of tensors without values."""
        arguments = self._arguments(given, named)
        self._check(arguments)
        return _returned(self._allocated(arguments))

    def _arguments(self, given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """By name; torch leaves out those that are as the schema has them."""
        overload = getattr(getattr(self._namespace, self._name), self._overload or "default")
        formals = overload._schema.arguments
        found = {formal.name: formal.default_value for formal in formals if formal.has_default_value()}
        return {**found, **{formal.name: value for formal, value in zip(formals, given, strict=False)}, **named}

    def _check(self, arguments: Mapping[str, Any]) -> None:
        """Tensors of one variable have one dtype, and all are on one device. Raises RuntimeError."""
        first: dict[str, tuple[str, Any]] = {}
        for param in self._operator.params:
            value = arguments.get(param.name)
            if not _is_tensor(value):
                continue
            for key, found in ((param.element, value.dtype), ("", value.device)):
                other, expected = first.setdefault(key, (param.name, found))
                if found != expected:
                    raise RuntimeError(f"'{self._name}': '{other}' is of {expected}, and '{param.name}' of {found}")

    def _allocated(self, arguments: Mapping[str, Any]) -> dict[str, "torch.Tensor"]:
        import torch

        elements = {param.name: param.element for param in self._operator.params}
        made = {}
        for name, result in self._operator.results.items():
            shapes = [arguments[of].shape for of in result.shapes]
            alike = (arguments.get(of) for of, element in elements.items() if element == elements[name])
            like = next((value for value in alike if _is_tensor(value)), arguments[result.shapes[0]])
            dtype = getattr(torch, result.dtype) if result.dtype else like.dtype
            made[name] = torch.empty(torch.broadcast_shapes(*shapes), dtype=dtype, device=like.device)
        return made

    def _passed(self, passing: str, value: Any) -> tuple[Any, Any]:
        """What C is given, and what must live as long as the call."""
        if passing == "tensor":
            if value is None:
                return ctypes.c_void_p(None), None
            held = self._native.TensorHandle(value)
            return ctypes.c_void_p(held.address), held
        if passing == "size":
            numbers = (ctypes.c_int64 * len(value))(*value)
            return _Size(numbers, len(value)), numbers
        if passing == "scalar":
            number = self._native.ScalarHandle(value)
            return ctypes.c_void_p(number.address), number
        if passing == "str":
            text = ctypes.c_char_p(value.encode())
            return text, text
        return _NUMBERS[passing](value), None


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _returned(results: Mapping[str, "torch.Tensor"]) -> Any:
    made = tuple(results.values())
    return made[0] if len(made) == 1 else made or None
