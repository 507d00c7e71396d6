"""Guessed ops as the lines of their entries; what is a guess has a remark."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diopigen.model.guess import GuessedLine, GuessedOp
from diopigen.targets.output import Render
from diopigen.text import pascal, wrapped

_WIDTH = 110


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """One entry; what an entry leaves out is None."""

    name: str
    doc: tuple[str, ...]  # e.g. ("Adds two tensors.",): lines of a folded text
    header: str | None
    stem: str | None
    args: tuple[str, ...]  # e.g. ("input: Tensor<T>  # guessed: of the common type",)
    outs: tuple[str, ...]
    where: str | None
    variants: str | None
    order: str | None
    c: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesView:
    source: str  # e.g. "functions.h"
    ops: tuple[EntryView, ...]


def entries(ops: Sequence[GuessedOp], source: str, render: Render) -> str:
    """The text of a file of schemas/ops with an entry for each op."""
    view = EntriesView(source=source, ops=tuple(_entry(op) for op in ops))
    return render("import_header/ops.yaml.j2", view)


def _entry(op: GuessedOp) -> EntryView:
    return EntryView(
        name=op.name,
        doc=wrapped(op.doc, _WIDTH),
        header=None if op.header == "functions" else op.header,
        stem=None if pascal(op.name) == op.stem else op.stem,
        args=tuple(_line(line) for line in op.args),
        outs=tuple(_line(line) for line in op.outs),
        where="{T: any}  # guessed" if op.has_variable else None,
        variants=None if op.forms == ("out",) else _list(op.forms),
        order=_list(op.order) + "  # as the header has it" if op.order else None,
        c=_spellings(op.c) + "  # as the header spells it" if op.c else None,
    )


def _line(line: GuessedLine) -> str:
    remark = f"  # guessed: {', '.join(line.why)}" if line.why else ""
    return f"{line.name}: {line.line}{remark}"


def _list(words: Iterable[str]) -> str:
    return f"[{', '.join(words)}]"


def _spellings(pairs: Iterable[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{name}: {json.dumps(spelled)}" for name, spelled in pairs) + "}"
