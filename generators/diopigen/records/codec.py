"""The one way that a file which crosses a border between packages is written and read."""

import json
from dataclasses import fields, is_dataclass
from functools import cache
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Record = TypeVar("Record")


class OtherVersion(ValueError):
    """A file is of another version than its class."""

    def __init__(self, found: object, wanted: int) -> None:
        super().__init__(f"it is of version {found}, not {wanted}")
        self.found, self.wanted = found, wanted


def record_of(kind: type[Record], document: Any) -> Record:
    """The record in a parsed file.

    Raises OtherVersion, or ValueError, which says what first is not as the class has it.
    """
    known: Any = kind
    wanted = next((f.default for f in fields(known) if f.name == "version"), None)
    if wanted is not None and document["version"] != wanted:
        raise OtherVersion(document["version"], int(str(wanted)))
    return typed(kind, document)


def typed(kind: type[Record], document: Any) -> Record:
    """The record in a parsed document. Raises ValueError, whose text names the first value of another type."""
    from pydantic import ValidationError

    try:
        record: Record = _adapter(kind).validate_python(document)  # type: ignore[arg-type]  # of a cache
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"'{place}': {first['msg']}" if place else first["msg"]) from None
    return record


def read_record(kind: type[Record], path: Path) -> Record:
    """Raises OSError, OtherVersion or one of MALFORMED."""
    return record_of(kind, json.loads(path.read_text(encoding="utf-8")))


def record_text(record: Any, *, sort_keys: bool = False) -> str:
    """A record as a file, which read_record() reads."""
    return part_text(record, 0, sort_keys=sort_keys) + "\n"


def part_text(record: Any, depth: int, *, sort_keys: bool = False) -> str:
    """A record as it stands in a file of others, so deep inside."""
    return _json(record, "\n" + " " * depth, sort_keys)


def _json(value: Any, line: str, sort_keys: bool) -> str:
    """As json.dumps(asdict(value), indent=1) has it, which takes several times as long; `line` begins a line."""
    if type(value) is str:
        return encode_basestring_ascii(value)
    names = _field_names(type(value))  # type: ignore[arg-type]  # of a cache
    pairs = value.items() if isinstance(value, dict) else [(name, getattr(value, name)) for name in names or ()]
    if isinstance(value, dict) or names is not None:
        inner = sorted(pairs, key=itemgetter(0)) if sort_keys else pairs
        parts = [f"{encode_basestring_ascii(key)}: {_json(part, f'{line} ', sort_keys)}" for key, part in inner]
        return f"{{{line} {f',{line} '.join(parts)}{line}}}" if parts else "{}"
    if isinstance(value, list | tuple):
        parts = [_json(part, f"{line} ", sort_keys) for part in value]
        return f"[{line} {f',{line} '.join(parts)}{line}]" if parts else "[]"
    return json.dumps(value)


@cache
def _field_names(kind: Any) -> tuple[str, ...] | None:
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None


@cache
def _adapter(kind: Any) -> "TypeAdapter[Any]":
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
