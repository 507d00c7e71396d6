"""How the supported releases of torch declare an operator: what drifted is told from what never was."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from diopigen.aten import records
from diopigen.aten.catalog import tensor_members
from diopigen.model.aten import AtenArg, AtenReturn, Declared

_ALIAS = re.compile(r"\([a-z!*|> -]+\)")  # e.g. "(a!)", "(a -> *)"


@dataclass(slots=True, kw_only=True)
class Releases:
    """The records of a folder, read when the first operator is asked for."""

    folder: Path  # e.g. schemas/aten
    kept: dict[str, dict[str, list[str]]] | None = field(default=None, init=False)
    names: dict[str, str] | None = field(default=None, init=False)  # struct -> overload

    @classmethod
    def of(cls, release: str, schemas: Mapping[str, str]) -> "Releases":
        """One release alone."""
        releases = cls(folder=Path())
        releases.kept = {release: {}}
        for name, schema in schemas.items():
            releases.kept[release].setdefault(name.partition(".")[0], []).append(schema)
        return releases

    def declared(self, name: str) -> tuple[Declared, ...]:
        """The overload called `name` in each release, newest first; for a name without a dot, its other forms, too."""
        base = name.partition(".")[0]
        bases = (base,) if "." in name else (base, f"{base}_")
        return tuple(
            Declared(release=release, overload=overload, schema=schema, args=arguments(schema), returns=returns(schema))
            for release, packets in self._packets().items()
            for base in bases
            for schema in packets.get(base, ())
            if (overload := schema.partition("(")[0]) == name or "." not in name
        )

    def spelled(self, struct: str) -> tuple[Declared, ...]:
        """The overload whose struct in at::_ops is `struct`, e.g. "add__Tensor", in each release, newest first."""
        if self.names is None:
            schemas = (s for packets in self._packets().values() for listed in packets.values() for s in listed)
            self.names = {name.replace(".", "_"): name for s in schemas for name in (s.partition("(")[0],)}
        name = self.names.get(struct)
        return () if name is None else tuple(d for d in self.declared(name) if d.overload == name)

    def _packets(self) -> dict[str, dict[str, list[str]]]:
        """The schemas of each release, newest first, by the name before the dot."""
        if self.kept is None:
            self.kept = {}
            for path in sorted(self.folder.glob("*.txt"), key=lambda path: _version(path.stem), reverse=True):
                packets = self.kept.setdefault(path.stem, {})
                for name, schema in records.read(str(path), self.folder).items():
                    packets.setdefault(name.partition(".")[0], []).append(schema)
        return self.kept


@dataclass(slots=True, kw_only=True)
class Recorded:
    """The overloads of one record, in place of an installed torch's."""

    schemas: Mapping[str, str]
    packets: dict[str, list[str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for name in self.schemas:
            self.packets.setdefault(name.partition(".")[0], []).append(name)

    def names(self) -> Iterable[str]:
        return self.schemas.keys()

    def members(self) -> frozenset[str]:
        """Of a tensor in C++: those of the installed torch, for records have none."""
        return tensor_members()

    def overload(self, name: str) -> Declared | None:
        schema = self.schemas.get(name)
        if schema is None:
            return None
        return Declared(release="", overload=name, schema=schema, args=arguments(schema), returns=returns(schema))

    def packet(self, base: str) -> tuple[Declared, ...]:
        return tuple(o for name in self.packets.get(base, ()) if (o := self.overload(name)) is not None)


@cache  # releases declare most operators alike
def arguments(schema: str) -> tuple[AtenArg, ...]:
    """The arguments of a schema as torch writes it; those of an out= form stand last and are written."""
    inside, _ = _parts(schema)
    found, keyword = [], False
    for item in _items(inside):
        if item == "*":
            keyword = True
            continue
        head, _, default = item.partition("=")
        type_, name = head.rsplit(" ", 1)
        written = "!" in type_
        out = keyword and written
        plain = _ALIAS.sub("", type_)
        found.append(
            AtenArg(
                name=name, type=plain, default=default or None, keyword=keyword and not out, out=out, mutated=written
            )
        )
    return tuple(found)


@cache
def returns(schema: str) -> tuple[AtenReturn, ...]:
    """The returns of a schema; names are those that it gives."""
    _, result = _parts(schema)
    listed = result[1:-1] if result.startswith("(") else result
    return tuple(_returned(item) for item in _items(listed))


def _returned(item: str) -> AtenReturn:
    plain = _ALIAS.sub("", item)
    type_, _, name = plain.partition(" ")
    return AtenReturn(name=name or None, type=type_, alias=plain != item)


def _parts(schema: str) -> tuple[str, str]:
    """e.g. ("Tensor self", "Tensor")"""
    before, _, result = schema.rpartition(") -> ")
    return before.partition("(")[2], result


def _items(listed: str) -> Iterator[str]:
    """What stands between commas outside of brackets."""
    depth, item = 0, ""
    for letter in listed:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            yield item.strip()
            item = ""
        else:
            item += letter
    if item.strip():
        yield item.strip()


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())
