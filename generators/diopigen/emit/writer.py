"""Writes outputs: all rendered first, then only what differs; a run that is killed leaves whole files, and a record."""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from diopigen.atomic import clear_scratch, write_text
from diopigen.emit.manifest import Manifest, is_ours, read_manifest, text_hash
from diopigen.targets.output import Output


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file that is not as it should be."""

    path: Path
    kind: str  # "new", "changed", "orphan"
    before: str
    after: str
    edited: bool  # it was changed by hand


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """What writing would do to one output root."""

    root: Path
    changes: tuple[Change, ...]
    before: Manifest  # of the last run, with what killed runs meant to write
    manifest: Manifest
    manifest_path: Path

    @property
    def edited(self) -> tuple[Change, ...]:
        return tuple(c for c in self.changes if c.edited)


def plan_writes(outputs: Iterable[Output], root: Path, manifest_path: Path, owned: tuple[str, ...]) -> WritePlan:
    """Compares `outputs` with what lies under `root` and with the record of the last run at `manifest_path`.

    `owned` are the path prefixes that the run's targets are in charge of: a listed file under one of them that is no
    output any more is an orphan. Files of targets that did not run stay as they are.
    """
    old = read_manifest(manifest_path, root)
    new = Manifest(
        files={p: h for p, h in old.files.items() if not p.startswith(owned)},
        writing={p: hashes for p, hashes in old.writing.items() if not p.startswith(owned)},
    )
    changes: list[Change] = []
    for output in sorted(outputs, key=lambda o: o.path):
        path = root / output.path
        new.files[output.path] = text_hash(output.text)
        before = _read(path)
        if before == output.text:
            continue
        kind = "new" if before is None else "changed"
        edited = before is not None and not is_ours(path, output.path, old)
        changes.append(Change(path=path, kind=kind, before=before or "", after=output.text, edited=edited))
    for relative in sorted({*old.files, *old.writing} - {*new.files, *new.writing}):
        path = root / relative
        before = _read(path)
        if before is not None:
            edited = not is_ours(path, relative, old)
            changes.append(Change(path=path, kind="orphan", before=before, after="", edited=edited))
    return WritePlan(root=root, changes=tuple(changes), before=old, manifest=new, manifest_path=manifest_path)


def write(plan: WritePlan) -> None:
    """Carries out `plan`: new and changed files, then orphans, the manifest last.

    What is about to be written is recorded before. Raises Unwritable.
    """
    for path in (plan.manifest_path, *(plan.root / relative for relative in plan.before.writing)):
        clear_scratch(path)
    if plan.changes:
        _record(_begun(plan), plan.manifest_path)
    for change in plan.changes:
        if change.kind != "orphan":
            write_text(change.path, change.after)
    for change in plan.changes:
        if change.kind == "orphan":
            change.path.unlink(missing_ok=True)
            _prune(change.path.parent, plan.root)
    _record(plan.manifest, plan.manifest_path)


def _begun(plan: WritePlan) -> Manifest:
    """The manifest while `plan` is carried out: any file may be as before it or after it."""
    writing = dict(plan.before.writing)
    for change in plan.changes:
        if change.kind != "orphan":
            relative = change.path.relative_to(plan.root).as_posix()
            writing[relative] = [*writing.get(relative, ()), text_hash(change.after)]
    return Manifest(files=plan.before.files, writing=writing)


def _record(manifest: Manifest, path: Path) -> None:
    text = manifest.text()
    if _read(path) != text:
        write_text(path, text)


def diff(plan: WritePlan, shown_root: Path) -> Iterator[str]:
    """The changes as a unified diff."""
    for change in plan.changes:
        name = _shown(change.path, shown_root)
        yield from difflib.unified_diff(
            change.before.splitlines(keepends=True),
            change.after.splitlines(keepends=True),
            f"a/{name}" if change.kind != "new" else "/dev/null",
            f"b/{name}" if change.kind != "orphan" else "/dev/null",
        )


def _shown(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return None


def _prune(folder: Path, root: Path) -> None:
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
