"""What commands say that only read: kept while all that it follows from is as it was. Imports nothing heavy."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from diopigen.diagnostics import Diagnostic, Diagnostics, Severity, Span
from diopigen.emit.fresh import Inputs, common_inputs, file_hashes, fingerprint, vendor_inputs
from diopigen.kept import kept_texts
from diopigen.project import Project


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of a command, and whether it may be kept: not where this machine lacks what a whole one needs."""

    text: str
    lasting: bool


def answer(
    project: Project,
    vendor: str | None,
    words: tuple[str, ...],
    diagnostics: Diagnostics,
    find: Callable[[], Answer | None],
) -> str | None:
    """The text that `find` gives for `words`, with its findings in `diagnostics`; None where it finds none.

    Only an answer without errors and warnings is kept: what is wrong may be so outside of the files that are compared.
    Nor is one kept of files that changed meanwhile.
    """
    path = project.cache / "answers.kept"
    with kept_texts(path, project.shown(path), diagnostics) as kept:
        key = _key(project, vendor, words)
        if (known := kept.found(key)) is not None:
            text, *notes = json.loads(known)
            diagnostics.add(*map(_note, notes))
            return str(text)
        found = find()
        if found is None:
            return None
        clean = all(finding.severity is Severity.NOTE for finding in diagnostics.found)
        if found.lasting and clean and _key(project, vendor, words) == key:
            kept.keep(key, json.dumps([found.text, *map(_written, diagnostics.found)]))
        return found.text


def _key(project: Project, vendor: str | None, words: tuple[str, ...]) -> str:
    inputs = common_inputs(project) + (Inputs() if vendor is None else vendor_inputs(project, vendor))
    places = (project.own and project.own[1], project.convert_config, *project.more_schemas)
    return fingerprint(file_hashes(project.root, inputs), (*words, repr(vendor), *map(repr, places)))


def _written(note: Diagnostic) -> dict[str, Any]:
    return {name: value for name, value in asdict(note).items() if name != "severity"}


def _note(written: dict[str, Any]) -> Diagnostic:
    lists = {
        "span": Span(**written["span"]),
        "related": tuple((text, Span(**span)) for text, span in written["related"]),
        "about": tuple(written["about"]),
    }
    return Diagnostic(severity=Severity.NOTE, **written | lists)
