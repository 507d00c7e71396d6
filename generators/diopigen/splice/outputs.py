"""The outputs after an edit of entries: those of the last run, with what the entries say in them replaced."""

import importlib
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from diopigen.emit.manifest import Manifest, read_manifest, text_hash
from diopigen.emit.place import Destination
from diopigen.emit.writer import Change, WritePlan
from diopigen.model.op import Op
from diopigen.passes.contract.bind import said
from diopigen.splice.entries import Beyond, Edit
from diopigen.targets.output import Piece, Render


def _docs(op: Op) -> object:
    return op.doc, op.math, op.backward and op.backward.math


def _kernels(op: Op) -> object:
    return op.kernel, op.backward and op.backward.kernel


def _cases(op: Op) -> object:
    return op.cases, _kernels(op)  # a kernel decides which cases there are


# What the targets print of an entry that nothing else follows from.
_PRINTED: dict[str, Callable[[Op], object]] = {
    "header": _docs,
    "kernels": _kernels,
    "compiler": _kernels,
    "conformance": _cases,
}


def spliced(edits: tuple[Edit, ...], place: Destination, targets: tuple[str, ...], render: Render) -> WritePlan:
    """What writing the outputs of `targets` would do at `place`, where all is as a run left it. Raises Beyond."""
    files = _Files(place)
    for name in targets:
        for edit in edits:
            for before, after in _pieces(name, edit, render):
                files.replace(before, after)
    return files.plan()


def _pieces(target: str, edit: Edit, render: Render) -> Iterator[tuple[Piece, Piece]]:
    """Each piece of an entry, before and after."""
    said_before, said_after = (said([_PRINTED[target](op) for op in p.ops]) for p in (edit.before, edit.after))
    if said_before != said_after:
        module = importlib.import_module(f"diopigen.targets.{target}")
        before, after = (tuple(module.pieces(program, render)) for program in (edit.before, edit.after))
        if len(before) != len(after):
            raise Beyond
        yield from zip(before, after, strict=True)


class _Files:
    """The outputs at one place, of which those that change are read."""

    def __init__(self, place: Destination) -> None:
        self._place = place
        self._manifest = read_manifest(place.manifest, place.root)
        self._read: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def replace(self, before: Piece, after: Piece) -> None:
        if (before.paths, before.beside) != (after.paths, after.beside):
            raise Beyond
        pattern = self._place.path(before.paths)
        texts = {path: self._text(path) for path in self._manifest.files if fnmatchcase(path, pattern)}
        found = [path for path, text in texts.items() for _ in range(text.count(before.text))]
        if not found and before.beside and not any(before.beside in text for text in texts.values()):
            return
        if len(found) != 1 or not before.text or not after.text:
            raise Beyond
        self._texts[found[0]] = texts[found[0]].replace(before.text, after.text)

    def plan(self) -> WritePlan:
        texts = {path: text for path, text in sorted(self._texts.items()) if text != self._read[path]}
        changes = (
            Change(path=self._place.root / path, kind="changed", before=self._read[path], after=text, edited=False)
            for path, text in texts.items()
        )
        files = self._manifest.files | {path: text_hash(text) for path, text in texts.items()}
        return WritePlan(
            root=self._place.root,
            changes=tuple(changes),
            before=self._manifest,
            manifest=Manifest(files=files),
            manifest_path=self._place.manifest,
        )

    def _text(self, path: str) -> str:
        if path not in self._texts:
            self._read[path] = self._texts[path] = (self._place.root / path).read_bytes().decode("utf-8")
        return self._texts[path]
