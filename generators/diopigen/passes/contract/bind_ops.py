"""The ops of a folder, of which only the files that changed are read."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from diopigen import diagnostics as findings
from diopigen.diagnostics import Diagnostics, Part, Span
from diopigen.kept import KeptTexts
from diopigen.model import compose, expr, type
from diopigen.model import op as model
from diopigen.model.op import Op
from diopigen.passes.contract.expand import names_of
from diopigen.source.yaml.nodes import read_text
from diopigen.trees import Trees
from diopigen.vocabulary import dtype
from diopigen.vocabulary.dtype import DTypes

if TYPE_CHECKING:
    from diopigen.passes.contract.bind import Entry


def bind_ops(
    folder: Path,
    show: Callable[[Path], str],
    dtypes: DTypes,
    diagnostics: Diagnostics,
    kept: KeptTexts | None = None,
    before: Iterable[Op] = (),
) -> tuple[Op, ...]:
    """Every op of every file of `folder`, files in alphabetical order; an op with an error is left out.

    `show` gives a file's name in messages. The names of the ops `before` these are taken. A file that `kept` has the
    ops of is not read, and what is read without a finding is added to it.
    """
    ops: list[Op] = []
    first = {op.name: op.span for op in before}
    trees = Trees((model, expr, type, compose, dtype, findings))
    ground = KeptTexts.key(dtypes)
    paths = sorted(folder.glob("*.yaml"))
    topics = {path.stem for path in paths}
    for path in paths:
        shown = show(path)
        whole, _, number = path.stem.rpartition("_")
        if number.isdigit() and whole in topics:
            message = f"the outputs of '{path.name}' have the names of part {number} of '{whole}.yaml'"
            diagnostics.error("bad-name", message, Span(path=shown, line=1, column=1), "rename the file")
        text = read_text(path, shown, diagnostics)
        if text is None:
            continue
        key = KeptTexts.key(ground, shown, text)
        known = None if kept is None else kept.found(key)
        found = Diagnostics()
        if known is None:
            from diopigen.passes.contract.bind import entries

            of_file = _once(entries(text, shown, path.stem, dtypes, found), first, found)
        else:
            again = cast(tuple[Op, ...], trees.tree(known))
            of_file = _once(((_part(op), op.name, partial(_itself, op)) for op in again), first, found)
        ops += of_file
        diagnostics.add(*found.found)
        diagnostics.parts += found.parts
        if kept is not None and known is None and not found.found:
            kept.keep(key, trees.text(tuple(of_file)))
    return tuple(ops)


def _itself(op: Op) -> Op:
    return op


def _part(op: Op) -> Part:
    own = op.backward.name if op.backward is not None else None
    stems = (*(stem for _, stem in op.symbols), own or "")
    return Part(span=op.span, names=names_of(op.name, op.words, stems))


def _once(entries: "Iterable[Entry]", first: dict[str, Span], diagnostics: Diagnostics) -> list[Op]:
    """The ops whose names are new; `first` are those before with their places."""
    ops = []
    for part, name, read in entries:
        if name in first:
            diagnostics.parts.append(replace(part, readable=False))
            diagnostics.error(
                "duplicate-op",
                f"the op '{name}' is defined twice",
                part.span,
                "rename one of them",
                (("the first is here", first[name]),),
            )
            continue
        first[name] = part.span
        diagnostics.parts.append(part)
        op = read()
        if op is not None:
            ops.append(op)
    return ops
