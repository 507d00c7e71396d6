"""Kept files as the records that they hold, with every value of its type; nothing that is read is taken as it comes."""

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_Record = TypeVar("_Record")


def typed(kind: type[_Record], document: Any) -> _Record:
    """The record in a parsed document. Raises ValueError, whose text names the first value of another type."""
    from pydantic import ValidationError

    try:
        record: _Record = _adapter(kind).validate_python(document)  # type: ignore[arg-type]  # of a cache
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"'{place}': {first['msg']}" if place else first["msg"]) from None
    return record


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
