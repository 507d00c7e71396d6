"""Writes the entry of a new op, after the model of another or the least that runs, and says what to do with it."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from diopigen.aten.catalog import TorchMissing, load
from diopigen.atomic import write_text
from diopigen.boundary import UNUSABLE
from diopigen.commands.report import print_findings
from diopigen.diagnostics import Diagnostics
from diopigen.emit.place import op_schema
from diopigen.passes.vendor.bind_own_ops import schema_folders
from diopigen.project import Project
from diopigen.source.format.op_entry import Known, entry_like, minimal_entry
from diopigen.source.format.op_style import modeline
from diopigen.source.yaml.layout import Group, Page, Unit, read_layout
from diopigen.source.yaml.nodes import read_yaml
from diopigen.text import suggestion
from diopigen.verbosity import tell

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TOPIC = "unary"  # of an entry without a model: an op of one argument
_OWN_TOPIC = "operators"  # in a vendor's own repository


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An op that there is."""

    unit: Unit
    path: Path
    place: str  # e.g. "schemas/ops/unary.yaml:9"


class Refused(Exception):
    """The entry cannot be written; the text says why, and what to do instead."""


def new(project: Project, name: str, like: str | None, topic: str | None) -> int:
    """Appends the entry `name` to a file of schemas/ops; the exit code: 0 written, 1 a file has mistakes, 2 refused."""
    diagnostics = Diagnostics()
    entries = _entries(project, diagnostics)
    if diagnostics.failed:
        print_findings(diagnostics, project.root, "human")
        return 1
    try:
        path = _target(project, entries, name, like, topic)
    except Refused as refusal:
        print(refusal, file=sys.stderr)
        return UNUSABLE
    # Operators of a vendor's own are no operators of torch's, and have a header of their own.
    known, left_out = (_known(project, diagnostics), ()) if project.own is None else (_unknown, ("header", "aten"))
    text = minimal_entry(name, known) if like is None else entry_like(entries[like].unit, name, known, left_out)
    first = modeline(op_schema(project, path))
    before = path.read_text(encoding="utf-8").rstrip("\n") if path.exists() else first
    after = f"{before}\n{text}" if before == first else f"{before}\n\n{text}"
    write_text(path, after)
    _say(project, path, after, name, None if like is None else entries[like])
    return 0


def _entries(project: Project, diagnostics: Diagnostics) -> dict[str, Entry]:
    """Every op of schemas/ops, and of the vendor's own, by name."""
    entries: dict[str, Entry] = {}
    folders = (project.schemas / "ops", *_own_folders(project))
    for path in (path for folder in folders for path in sorted(folder.glob("*.yaml"))):
        shown = project.shown(path)
        if read_yaml(path, shown, diagnostics) is None:
            continue
        page = read_layout(path.read_text(encoding="utf-8").removeprefix("\ufeff"))
        for unit in page.root.units if isinstance(page.root, Group) else ():
            if unit.key is not None:
                place = f"{shown}:{page.line(unit.begin) + 1}"
                entries.setdefault(unit.key.value, Entry(unit=unit, path=path, place=place))
    return entries


def _own_folders(project: Project) -> list[Path]:
    """Those of operators of the vendor's own, in its own repository."""
    return [] if project.own is None else [path for path, _ in schema_folders(project, project.own[0])]


def _target(project: Project, entries: dict[str, Entry], name: str, like: str | None, topic: str | None) -> Path:
    """The file that the entry belongs to. Raises Refused."""
    if not _NAME.fullmatch(name):
        raise Refused(f"'{name}' is no name for an op: lower case, digits and '_', a letter first")
    if name in entries:
        raise Refused(f"there is an op '{name}' already, at {entries[name].place}; edit it or choose another name")
    if like is not None and like not in entries:
        hint = suggestion(like, entries) or "'diopigen docs' lists them"
        raise Refused(f"there is no op '{like}' to take as the model; {hint}")
    if like is not None and not isinstance(entries[like].unit.value, Group):
        raise Refused(f"the op '{like}' at {entries[like].place} has no entry to take as the model")
    folder = project.schemas / "ops"
    if project.own is not None:
        folders = _own_folders(project)
        if not folders:
            shown = project.shown(project.own[1] / "vendor.yaml")
            raise Refused(f"{shown} names no folder of operators of its own; add 'schemas: [schemas]' to it")
        folder, topic = folders[0], topic or _OWN_TOPIC
    if topic is None:
        return entries[like].path if like is not None else folder / f"{_TOPIC}.yaml"
    path = folder / f"{topic}.yaml"
    near = suggestion(topic, sorted(p.stem for p in path.parent.glob("*.yaml")))
    if not _NAME.fullmatch(topic):
        raise Refused(f"'{topic}' is no name for a topic: lower case, digits and '_', a letter first")
    if not path.exists() and near is not None:
        raise Refused(f"there is no topic '{topic}'; {near} (for a new topic, make the file first)")
    return path


def _known(project: Project, diagnostics: Diagnostics) -> Known:
    """Whether the installed torch has an operator; without torch none is known."""
    try:
        catalog = load(project.cache, diagnostics)
    except TorchMissing:
        return lambda name: False
    return lambda name: catalog.overload(name) is not None or bool(catalog.packet(name))


def _unknown(name: str) -> bool:
    return False


def _say(project: Project, path: Path, text: str, name: str, model: Entry | None) -> None:
    unit, page = _written(text, name)
    held = unit.value
    assert isinstance(held, Group)
    keys = [inner.key.value for inner in held.units if inner.key is not None]
    after = f", after the model of '{model.unit.key.value}'" if model is not None and model.unit.key is not None else ""
    print(f"{project.shown(path)}:{page.line(unit.begin) + 1}: '{name}'{after}")
    tell(f"write:  {', '.join(key for key in keys if key in ('doc', 'math'))}")
    tell(f"adapt:  {', '.join(key for key in keys if key not in ('doc', 'math'))}")
    if "aten" not in keys and project.own is None:
        tell("add:    aten, if torch has operators for it")
    tell("then:   diopigen lint                    # placeholders that are left, and every error")
    tell(f"        diopigen explain {name}")
    if project.own is None:
        tell(f"        make build && .venv/bin/diopi-conformance run --op {name}")
    else:
        tell("        cmake --build build")


def _written(text: str, name: str) -> tuple[Unit, Page]:
    page = read_layout(text)
    assert isinstance(page.root, Group)
    return next(unit for unit in page.root.units if unit.key is not None and unit.key.value == name), page
