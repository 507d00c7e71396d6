"""Writes captured cases into a data folder, beside what earlier captures left there."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diopi_conformance.cases.model_cases import NAMES, model_names
from diopigen.atomic import write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """One call, without the name of whoever made it."""

    topic: str  # e.g. "matmul", the schema file
    function: str  # e.g. "diopiLinear"
    elements: str  # e.g. "f32"
    dtypes: dict[str, str]
    forward: dict[str, str]
    layout: str
    view: str
    values: dict[str, Any]
    data: dict[str, str] = field(default_factory=dict)  # argument: recipe of its values, where a case has its own

    @property
    def shared(self) -> str:
        """What the cases of one group have in common, as the line before them says it."""
        entry: dict[str, Any] = {"function": self.function, "elements": self.elements}
        if self.layout:
            entry["layout"] = self.layout
        if self.view != "contiguous":
            entry["view"] = self.view
        entry["dtypes"] = self.dtypes
        if self.forward:
            entry["forward"] = self.forward
        return _compact(entry)

    @property
    def key(self) -> str:
        """Equal for calls that are equal, or differ in elements of tensors alone."""
        return f"{self.topic} {self.shared} {_compact(_plain(self.values))}"


@dataclass(slots=True, kw_only=True)
class _Stored:
    number: int
    values: str  # JSON
    data: dict[str, str] = field(default_factory=dict)
    models: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        """e.g. '[3,{"input":[2,4]},[0]]', with the case's own recipes, if it has any, after that."""
        data = f",{_compact(self.data)}" if self.data else ""
        return f"[{self.number},{self.values},{_compact(sorted(self.models))}{data}]"


class Store:
    """A data folder in memory; `add` as often as wanted, then `write`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = list(model_names(folder))
        self._topics: dict[str, dict[tuple[str, str], _Stored]] = {}  # topic: shared line, values: case
        self._last: dict[str, int] = {}  # function: the highest number given
        for path in sorted(folder.glob("*.jsonl")):
            self._read(path)

    def add(self, model: str, cases: Iterable[Captured]) -> int:
        """Gives the cases to `model`; how many of them are new."""
        if model not in self._names:
            self._names.append(model)
        position = self._names.index(model)
        found = 0
        for case in cases:
            topic = self._topics.setdefault(case.topic, {})
            place = (case.shared, _compact(_plain(case.values)))
            if place not in topic:
                topic[place] = _Stored(number=self._next(case.function), values=place[1], data=case.data)
                found += 1
            if position not in topic[place].models:
                topic[place].models.append(position)
        return found

    def __len__(self) -> int:
        return sum(map(len, self._topics.values()))

    def write(self) -> None:
        """Writes every file; the same cases give the same bytes."""
        names = json.dumps(self._names, indent=0)
        write_text(self._folder / NAMES, names + "\n")
        for topic, stored in self._topics.items():
            write_text(self._folder / f"{topic}.jsonl", _text(stored))

    def _next(self, function: str) -> int:
        self._last[function] = self._last.get(function, -1) + 1
        return self._last[function]

    def _read(self, path: Path) -> None:
        topic = self._topics.setdefault(path.stem, {})
        shared, function = "", ""
        for text in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(text)
            if isinstance(entry, dict):
                shared, function = text, entry["function"]
                continue
            number, values, models, *data = entry
            stored = _Stored(number=number, values=_compact(values), data=dict(*data), models=models)
            topic[shared, stored.values] = stored
            self._last[function] = max(number, self._last.get(function, -1))


def _text(stored: dict[tuple[str, str], _Stored]) -> str:
    lines: list[str] = []
    for shared in sorted({shared for shared, _ in stored}):
        lines.append(shared)
        group = sorted((case for (line, _), case in stored.items() if line == shared), key=lambda case: case.number)
        lines += [case.text for case in group]
    return "".join(f"{line}\n" for line in lines)


def _plain(value: Any) -> Any:
    """Values as JSON has them; infinities and NaN as {"float": "inf"}, like a plan's."""
    if isinstance(value, dict):
        return {name: _plain(value[name]) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return {"float": str(value)}
    return value


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
