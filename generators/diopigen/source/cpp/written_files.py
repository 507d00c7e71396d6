"""Reads what the hand-written wrappers and derived operators name of torch, function by function."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from diopigen.diagnostics import Span
from diopigen.model.aten import Mention, Registration, Way, WrittenFile, WrittenItem
from diopigen.source.cpp.items import Item, arguments, closing, code_of, items, statements, words

_HEADER = re.compile(r"^#include <ATen/ops/(\w+?)(?:_ops|_meta|_native|_[a-z]+_dispatch)?\.h>\n", re.MULTILINE)
_DERIVATION = re.compile(r"void derive_(\w+)\(Derivations& d\)")
_REGISTERS = re.compile(r"(?:register|derive)_|TORCH_LIBRARY_IMPL$")
_NAMED = re.compile(r"(?:\b(?P<scopes>(?:\w+::)+)|\.|->)(?:template )?(?P<name>[A-Za-z_]\w*)\b(?P<call>\()?")
_STRUCTS = re.compile(r"\b_?ops::(\w+)")
_LINK = re.compile(r"\.(needs\(|add<|floats<|forward<)")
_STRUCT = re.compile(r",?\s*\bops::(\w+)")
_OPERATOR = re.compile(r'"([a-z_]\w*(?:\.\w+)?)"')


def written_files(torch: Path, shown: str) -> tuple[WrittenFile, ...]:
    """Those of the folder `torch`, which messages call `shown`: wrappers by name, then derivations as they register."""
    wrappers = sorted(path.stem for path in torch.glob("ops/*.cpp"))
    found = [_written(torch, shown, f"ops/{stem}.cpp", derives=False) for stem in wrappers]
    declarations = (torch / "derived" / "derivations.h").read_text(encoding="utf-8")
    for stem in _DERIVATION.findall(declarations):
        found.append(_written(torch, shown, f"derived/{stem}.cpp", derives=True))
    return tuple(found)


def _written(torch: Path, shown: str, name: str, derives: bool) -> WrittenFile:
    source = _Source(path=f"{shown}/{name}", text=(torch / name).read_text(encoding="utf-8"))
    found = list(items(source.code))
    registering = [item for item in found if _REGISTERS.match(item.name)]
    return WrittenFile(
        path=source.path,
        stem=Path(name).stem,
        derives=derives,
        listed=derives or "(Registrar& " in source.code,
        text=source.text,
        headers=tuple((m[1], m.span()) for m in _HEADER.finditer(source.text)),
        items=tuple(source.item(item) for item in found if item not in registering),
        registrations=tuple(r for item in registering for r in source.registrations(item, found)),
    )


@dataclass
class _Source:
    path: str
    text: str

    @cached_property
    def code(self) -> str:
        return code_of(self.text)

    @cached_property
    def _lines(self) -> list[int]:
        """Where each line begins."""
        return [0, *accumulate(len(line) for line in self.text.splitlines(keepends=True))]

    def item(self, item: Item) -> WrittenItem:
        code = self.code[item.start : item.end]
        # A function refers to itself only where it is recursive.
        return WrittenItem(
            name=item.name,
            words=words(code) - {item.name},
            mentions=tuple(self._mentions(item.start, item.end)),
            place=(item.start, item.end),
        )

    def registrations(self, item: Item, found: list[Item]) -> Iterator[Registration]:
        """What the function `item` registers; `found` are all items of the file."""
        needs: tuple[Mention, ...] = ()
        for start, end in statements(self.code, item):
            links = list(_LINK.finditer(self.code, start, end))
            for link in links:
                bracket = link.end() - 1
                behind = closing(self.code, bracket)
                if link[1] == "needs(":
                    needs = tuple(self._strings(bracket, behind, Way.NAME))
                else:
                    yield self._link(link.start(), bracket, behind, (start, end), needs)
            if not links:
                yield self._statement(start, end, found)

    def _link(
        self, start: int, bracket: int, behind: int, statement: tuple[int, int], needs: tuple[Mention, ...]
    ) -> Registration:
        """e.g. `.add<&derived::trunc, ops::trunc, ops::trunc_>()`, with the white space before it."""
        overloads = tuple(
            (self._mention(m[1], Way.STRUCT, m.start(1)), m.span())
            for m in _STRUCT.finditer(self.code, bracket, behind)
        )
        left = len(self.code[:start].rstrip())
        return Registration(
            words=words(_STRUCT.sub("", self.code[bracket:behind])),
            mentions=needs,
            overloads=overloads,
            place=(left, closing(self.code, behind)),
            statement=statement,
        )

    def _statement(self, start: int, end: int, found: list[Item]) -> Registration:
        """A call such as `registrar.add(control, &kernel, ...)`: the control, or the statement itself, has the name."""
        used = words(self.code[start:end])
        named = [*self._strings(start, end, Way.STRUCT)]
        for item in found:
            if item.name in used and "OperatorControl" in self.code[item.start : item.end]:
                named += self._strings(item.start, item.end, Way.STRUCT)
        mentions = list(self._mentions(start, end))
        if self.code.startswith("bind<", start):
            named += (m for m in mentions if m.way is Way.STRUCT)
        return Registration(
            words=used,
            mentions=tuple(m for m in mentions if m not in named),
            overloads=tuple((m, (start, end)) for m in named),
            place=(start, end),
            statement=(start, end),
        )

    def _strings(self, start: int, end: int, way: Way) -> Iterator[Mention]:
        for m in _OPERATOR.finditer(self.text, start, end):
            name = m[1].replace(".", "_") if way is Way.STRUCT else m[1]
            yield self._mention(name, way, m.start(1))

    def _mentions(self, start: int, end: int) -> Iterator[Mention]:
        """Each operator by each of its ways, once."""
        found = {(m[1], Way.STRUCT, 0): m.start(1) for m in _STRUCTS.finditer(self.code, start, end)}
        for m in _NAMED.finditer(self.code, start, end):
            name, scope = m["name"], m["scopes"] and m["scopes"].split("::")[-2]
            if m["call"] and scope in (None, "at"):
                count = arguments(self.code, m.end() - 1) + (scope is None)
                found.setdefault((name, Way.CALL, count), m.start("name"))
            elif scope is not None and scope != "std":
                found.setdefault((name, Way.NAME, 0), m.start("name"))
        for (name, way, count), place in found.items():
            yield self._mention(name, way, place, count)

    def _mention(self, name: str, way: Way, place: int, count: int = 0) -> Mention:
        line = bisect_right(self._lines, place)
        column = place - self._lines[line - 1] + 1
        return Mention(
            name=name, way=way, count=count, span=Span(path=self.path, line=line, column=column, length=len(name))
        )
