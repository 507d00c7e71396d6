"""Takes out of the hand-written C++ what does not compile against the installed torch, with the operators it serves.

A function goes if it names an operator that the installed torch lacks or declares with other types, and with it what
refers to it. An operator is left out if its kernel goes, or if it needs one that is left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from diopigen.diagnostics import Span
from diopigen.model.aten import (
    AtenArg,
    Declared,
    Mention,
    Overload,
    Registration,
    Rewritten,
    Way,
    WrittenFile,
    WrittenItem,
)
from diopigen.model.program import Program
from diopigen.passes.aten.catalog import Catalog
from diopigen.passes.aten.drift import Drift

_HEAD = """\
// {path} without what torch {release} lacks. Written by diopigen; do not edit.
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
"""


def leave_out(program: Program, files: tuple[WrittenFile, ...], catalog: Catalog, drift: Drift) -> Program:
    """Fills `derivations` and `rewritten`, adds to `drifted`, and removes the bindings that are served no longer."""
    torch = _Torch(catalog=catalog, drift=drift)
    bound = {b.overload.name: b for b in program.bindings}
    rewritten: list[Rewritten] = []
    empty: set[str] = set()
    for file in files:
        fitting = _Fitting(file, torch)
        if not fitting.lost and not fitting.gone:
            continue
        if file.listed and fitting.serves_nothing:
            empty.add(file.stem)
        text = "" if file.stem in empty else _HEAD.format(path=file.path, release=drift.release) + fitting.text()
        rewritten.append(Rewritten(path=file.path, text=text))
        for mention, reason in fitting.gone:
            name = torch.overload(mention)
            binding = bound.get(name)
            if binding is not None and binding.wrapper != file.stem:
                continue  # it is derived where the vendor lacks its function
            place = mention.span if binding is None else binding.span
            drift.leave_out(name, None if binding is None else binding.op, reason, place)
            bound.pop(name, None)
    return replace(
        program,
        bindings=tuple(bound.values()),
        drifted=tuple(d for d in drift.found.values() if d.overload not in bound),
        derivations=tuple(file.stem for file in files if file.derives and file.stem not in empty),
        rewritten=tuple(rewritten),
    )


class Operators(Protocol):
    """The operators of one release."""

    def names(self) -> Iterable[str]: ...
    def members(self) -> frozenset[str]: ...
    def overload(self, name: str) -> Declared | Overload | None: ...
    def packet(self, base: str) -> Sequence[Declared | Overload]: ...


def lost_overloads(files: tuple[WrittenFile, ...], catalog: Operators, drift: Drift) -> Iterator[tuple[str, str, Span]]:
    """What the files serve and cannot serve with `catalog`: each overload with the reason and its place."""
    torch = _Torch(catalog=catalog, drift=drift)
    for file in files:
        for mention, reason in _Fitting(file, torch).gone:
            yield torch.overload(mention), reason, mention.span


@dataclass(slots=True)
class _Torch:
    """What the installed torch lacks of the supported releases, or declares otherwise for a C++ compiler."""

    catalog: Operators
    drift: Drift
    structs: dict[str, str] = field(default_factory=dict)  # e.g. "add_Tensor" -> "add.Tensor"
    known: dict[tuple[str, Way, int], str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.structs = {name.replace(".", "_"): name for name in self.catalog.names()}

    def overload(self, mention: Mention) -> str:
        """e.g. "add.Tensor" for the struct add_Tensor."""
        if mention.way is not Way.STRUCT:
            return mention.name
        declared = self.drift.releases.spelled(mention.name)
        return declared[0].overload if declared else self.structs.get(mention.name, mention.name)

    def lacks_header(self, stem: str) -> bool:
        """Whether the installed torch has no ATen/ops/<stem>.h, and another release has."""
        return not self._packet(stem) and bool(self.drift.releases.declared(stem))

    def obstacle(self, mention: Mention) -> str | None:
        """Why C++ that names the operator does not compile; None also for what no release has."""
        key = (mention.name, mention.way, mention.count)
        if key not in self.known:
            self.known[key] = self._obstacle(mention)
        left_out = self.drift.found.get(mention.name) if mention.way is Way.NAME else None
        return self.known[key] if left_out is None else left_out.reason

    def _obstacle(self, mention: Mention) -> str | None:
        if mention.way is Way.CALL:
            return self._call(mention)
        name = self.overload(mention)
        declared = [d for d in self.drift.releases.declared(name) if d.overload == name]
        overload = self.catalog.overload(name)
        if declared and overload is None:
            whole = mention.way is Way.NAME and "." not in name and self._packet(name)  # at::native::add
            return None if whole else self.drift.lacks(declared)
        if mention.way is not Way.STRUCT or overload is None or not declared:
            return None
        return None if any(_types(d) == _types(overload) for d in declared) else self.drift.differs(declared)

    def _call(self, mention: Mention) -> str | None:
        """A call compiles if an overload still takes so many arguments of such types."""
        base = mention.name.removesuffix("_outf").removesuffix("_out")
        if base != mention.name and not self.drift.releases.declared(mention.name):
            forms = [d for d in self.drift.releases.declared(base) if any(a.out for a in d.args)]
            present = any(a.out for o in self._packet(base) for a in o.args)
            return self.drift.lacks(forms) if forms and not present else None
        declared = [
            d for d in self.drift.releases.declared(mention.name) if d.overload.partition(".")[0] == mention.name
        ]
        taking = [d for d in declared if _takes(d.args, mention.count)]
        if not taking or mention.name in self.catalog.members():
            return None
        now = [o.args for o in self._packet(mention.name)]
        if any(_takes(args, mention.count) and _alike(d.args, args, mention.count) for d in taking for args in now):
            return None
        return self.drift.differs(taking) if now else self.drift.lacks(taking)

    def _packet(self, name: str) -> Sequence[Declared | Overload]:
        return self.catalog.packet(name) or self.catalog.packet(f"{name}_")


def _types(declared: Declared | Overload) -> tuple[object, ...]:
    """All that the type of a C++ function follows from."""
    args = [(a.type, a.mutated) for a in sorted(declared.args, key=lambda a: a.out)]
    return (*args, *((r.type, r.alias) for r in declared.returns))


def _takes(args: Iterable[AtenArg], count: int) -> bool:
    """Whether a call with `count` arguments may be one of a function with these."""
    listed = [a for a in args if not a.out]
    needed = sum(a.default is None for a in listed)
    return needed <= count <= len(listed)


def _alike(before: Iterable[AtenArg], now: Iterable[AtenArg], count: int) -> bool:
    """Whether the first `count` arguments have the same types."""
    first, second = ([a.type for a in args if not a.out][:count] for args in (before, now))
    return first == second


class _Fitting:
    """One file, and what of it fits the installed torch."""

    def __init__(self, file: WrittenFile, torch: _Torch) -> None:
        self._file, self._torch = file, torch
        self.lost = dict(self._lost())  # items, each with the reason
        names = {item.name: reason for item, reason in self.lost.items() if item.name}
        self._cut: list[Registration] = []  # with all of their overloads
        self._overloads: list[tuple[int, int]] = []  # single ones of registrations that stay
        self.gone: list[tuple[Mention, str]] = []  # overloads, each with the reason
        for registration in file.registrations:
            self._judge(registration, names)

    def _lost(self) -> Iterator[tuple[WrittenItem, str]]:
        """Items that name what torch lacks, and those that refer to them, however often."""
        found: dict[str, str] = {}
        waiting = list(self._file.items)
        while True:
            lost = [(item, reason) for item in waiting if (reason := self._reason(item, found)) is not None]
            if not lost:
                return
            yield from lost
            found |= {item.name: reason for item, reason in lost if item.name}
            waiting = [item for item in waiting if all(item is not other for other, _ in lost)]

    def _reason(self, part: WrittenItem | Registration, lost: dict[str, str]) -> str | None:
        for mention in part.mentions:
            reason = self._torch.obstacle(mention)
            if reason is not None:
                return f"it needs '{self._torch.overload(mention)}': {reason}"
        return next((lost[word] for word in sorted(part.words) if word in lost), None)

    def _judge(self, registration: Registration, lost: dict[str, str]) -> None:
        """The reason of an overload is its own before that of its kernel."""
        shared = self._reason(registration, lost)
        reasons = [(mention, self._torch.obstacle(mention) or shared) for mention, _ in registration.overloads]
        self.gone += ((mention, reason) for mention, reason in reasons if reason is not None)
        staying = [mention for mention, reason in reasons if reason is None]
        if shared is not None or (reasons and not staying):
            self._cut.append(registration)
        else:
            self._overloads += (
                place for (_, place), (_, reason) in zip(registration.overloads, reasons, strict=True) if reason
            )

    @property
    def serves_nothing(self) -> bool:
        return not any(r.overloads for r in self._kept)

    @property
    def _kept(self) -> list[Registration]:
        return [r for r in self._file.registrations if r not in self._cut]

    def text(self) -> str:
        """The file without it all."""
        text = self._file.text
        cuts = [place for stem, place in self._file.headers if self._torch.lacks_header(stem)]
        cuts += (_with_comment(text, item.place) for item in self.lost)
        cuts += self._overloads
        statements = {r.statement for r in self._kept}
        for registration in self._cut:
            stays = registration.statement in statements or ".needs(" in text[slice(*registration.statement)]
            cuts.append(registration.place if stays else _with_comment(text, registration.statement))
        return _without(text, cuts)


def _with_comment(text: str, place: tuple[int, int]) -> tuple[int, int]:
    """With the comment lines right above, and all of its lines."""
    start, end = place
    start = text.rfind("\n", 0, start) + 1
    while start and text[text.rfind("\n", 0, start - 1) + 1 : start].lstrip().startswith("//"):
        start = text.rfind("\n", 0, start - 1) + 1
    rest = text.find("\n", end)
    return start, end if rest < 0 or text[end:rest].strip() else rest + 1


def _without(text: str, cuts: Iterable[tuple[int, int]]) -> str:
    """The text without these places, which may overlap, and without two empty lines in a row."""
    kept, place = [], 0
    for start, end in sorted(cuts):
        kept.append(text[place:start] if start > place else "")
        place = max(place, end)
    kept.append(text[place:])
    lines = "".join(kept).split("\n")
    return "\n".join(line for i, line in enumerate(lines) if line or not i or lines[i - 1])
