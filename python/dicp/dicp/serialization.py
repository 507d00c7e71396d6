"""A program's specification as plain data, which JSON holds, and back: the executor needs to tell tuples from lists."""

from typing import Any

import torch

_WORDS: tuple[tuple[str, type[Any]], ...] = (
    ("dtype", torch.dtype),
    ("layout", torch.layout),
    ("memory_format", torch.memory_format),
)


class NotSerializable(Exception):
    """Something is neither a number, a word, a list of those nor a name of torch's; the message is one sentence."""


def serialized(value: Any) -> Any:
    """What JSON can hold. Raises NotSerializable."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, list):
        return [serialized(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [serialized(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": [[key, serialized(item)] for key, item in value.items()]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    for word, kind in _WORDS:
        if isinstance(value, kind):
            return {word: str(value).removeprefix("torch.")}
    raise NotSerializable(f"a {type(value).__name__} cannot be serialized")


def deserialized(given: Any) -> Any:
    """The value that was written."""
    if isinstance(given, list):
        return [deserialized(item) for item in given]
    if not isinstance(given, dict):
        return given
    ((word, content),) = given.items()
    match word:
        case "tuple":
            return tuple(deserialized(item) for item in content)
        case "dict":
            return {key: deserialized(item) for key, item in content}
        case "complex":
            return complex(*content)
        case "device":
            return torch.device(content)
    named = getattr(torch, content)
    assert isinstance(named, dict(_WORDS)[word])
    return named
