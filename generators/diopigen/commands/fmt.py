"""Brings schemas/ops and the vendors' configurations into canonical form, or says which are not.

A file with an error stays as it is.
"""

import difflib
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from diopigen.atomic import write_text
from diopigen.commands.report import print_findings
from diopigen.diagnostics import Diagnostics, Span
from diopigen.emit.place import op_schema
from diopigen.passes.vendor.bind_own_ops import schema_folders
from diopigen.project import Project
from diopigen.source.format.conversion_style import canonical_conversions
from diopigen.source.format.op_style import canonical, comments_of
from diopigen.source.yaml.nodes import Entry, Leaf, Mapping, Node, Sequence, parse_yaml, read_yaml
from diopigen.verbosity import tell

_CONFIGURATION = "convert_config.yaml"
_PROFILES = "profiles"  # the folder of a vendor's other configurations


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """A file and what it should be."""

    path: Path
    shown: str  # e.g. "schemas/ops/copy.yaml"
    before: str
    after: str


def fmt(project: Project, files: tuple[Path, ...], check: bool, diff: bool, error_format: str) -> int:
    """Formats `files`, or all with a form; the exit code: 1 after findings or, with check or diff, for changes."""
    diagnostics = Diagnostics()
    pages = [page for path in _paths(project, files) if (page := formatted(project, path, diagnostics)) is not None]
    differing = [page for page in pages if page.before != page.after]
    print_findings(diagnostics, project.root, error_format)
    if diff:
        for page in differing:
            sys.stdout.writelines(_diff(page))
    if check:
        for page in differing:
            print(f"{page.shown} is not in canonical form; run 'diopigen fmt'", file=sys.stderr)
    if check or diff:
        return 1 if differing or diagnostics.failed else 0
    for page in differing:
        write_text(page.path, page.after)
        if error_format == "human":
            tell(f"formatted {page.shown}")
    if error_format == "human":
        tell(f"{len(pages)} files: {len(differing)} formatted, {len(pages) - len(differing)} unchanged")
    return 1 if diagnostics.failed else 0


def formatted(project: Project, path: Path, diagnostics: Diagnostics) -> Formatted | None:
    """What `path` is and should be; None after a diagnostic."""
    shown, found = project.shown(path), Diagnostics()
    node = read_yaml(path, shown, found)
    configuration = _is_configuration(project, path)
    if configuration and not isinstance(node, Sequence | None) and node != Mapping(entries=(), span=node.span):
        found.error("wrong-kind", f"{path.name} is a list of entries", node.span, "write - diopiAdd: ...")
    elif not configuration and not isinstance(node, Mapping | None):
        found.error("wrong-kind", "a schema file is a mapping from op names to entries", node.span)
    diagnostics.add(*found.found)
    if node is None or found.failed:
        return None
    before = path.read_bytes().decode("utf-8")
    after = canonical_conversions(before) if configuration else canonical(before, op_schema(project, path))
    changed = change(node, before, after, shown)
    if changed is not None:
        diagnostics.error(
            "unformatted",
            "this file cannot be formatted without changing what it says, and stays as it is",
            changed,
            "write comments on lines of their own, and keys on one line",
        )
        return None
    return Formatted(path=path, shown=shown, before=before, after=after)


def _paths(project: Project, files: tuple[Path, ...]) -> list[Path]:
    """The named files, and those of named folders; of a vendor's folder its configurations, and all of its own schemas.

    What a package brings is left alone.
    """
    paths: list[Path] = []
    names = project.vendor_names() if project.inside else () if project.own is None else (project.own[0],)
    schemas = (project.schemas / "ops",) if project.inside else ()
    own = (path for name in names for path, _ in schema_folders(project, name))
    for path in files or (*schemas, *map(project.vendor_folder, names), *own):
        if not path.is_dir():
            paths.append(path)
        elif (path / "vendor.yaml").exists():
            paths += (*path.glob(_CONFIGURATION), *sorted(path.glob(f"{_PROFILES}/*.yaml")))
        else:
            paths += sorted(path.glob("*.yaml"))
    return list(dict.fromkeys(paths))


def _is_configuration(project: Project, path: Path) -> bool:
    """Whether a file says what a chip lacks, and not what operators are."""
    return path.name == _CONFIGURATION or (
        path.parent.name == _PROFILES and (path.parent.parent / "vendor.yaml").is_file()
    )


def change(node: Node, before: str, after: str, shown: str) -> Span | None:
    """The first place in `before` of which `after` says something else, or whose comment it lacks; None for none."""
    found = Diagnostics()
    again = parse_yaml(after, shown, found)
    if again is None or found.failed:
        return node.span
    if (place := _difference(node, again)) is not None:
        return place
    kept = Counter(comment.text for comment in comments_of(after))
    for comment in comments_of(before):
        kept[comment.text] -= 1
        if kept[comment.text] < 0:
            return Span(path=shown, line=comment.line + 1, column=comment.column + 1)
    return node.span if kept.total() else None


def _difference(a: Node, b: Node) -> Span | None:
    """Where `a` holds something else than `b`, the order of keys aside."""
    match a, b:
        case Leaf(), Leaf() if (a.text == b.text and type(a.value) is type(b.value)) or a.value is b.value is None:
            return None
        case Sequence(), Sequence() if len(a.items) == len(b.items):
            return next(filter(None, map(_difference, a.items, b.items)), None)
        case Mapping(), Mapping() if len(a.entries) == len(b.entries):
            return next(filter(None, (_of_entry(entry, b.get(entry.key.text)) for entry in a.entries)), None)
        case _:
            return a.span


def _of_entry(entry: Entry, other: Node | None) -> Span | None:
    return entry.key.span if other is None else _difference(entry.value, other)


def _diff(page: Formatted) -> list[str]:
    before, after = page.before.splitlines(keepends=True), page.after.splitlines(keepends=True)
    return list(difflib.unified_diff(before, after, f"a/{page.shown}", f"b/{page.shown}"))
