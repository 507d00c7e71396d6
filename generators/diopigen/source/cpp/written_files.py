"""Reads what the hand-written wrappers and derived operators name of torch."""

import re
from collections.abc import Iterator
from pathlib import Path

from diopigen.diagnostics import Span
from diopigen.model.aten import WrittenFile

_HEADER = re.compile(r"#include <ATen/ops/(\w+?)(?:_ops|_meta|_native)?\.h>")
_OPERATOR = re.compile(r"\b_?ops::(\w+)")
_DERIVATION = re.compile(r"void derive_(\w+)\(Derivations& d\)")


def written_files(torch: Path, shown: str) -> tuple[WrittenFile, ...]:
    """Those of the folder `torch`, which messages call `shown`: wrappers by name, then derivations as they register."""
    wrappers = sorted(path.stem for path in torch.glob("ops/*.cpp"))
    found = [_written(torch, shown, f"ops/{stem}.cpp", stem, derives=False) for stem in wrappers]
    declarations = (torch / "derived" / "derivations.h").read_text(encoding="utf-8")
    for stem in _DERIVATION.findall(declarations):
        found.append(_written(torch, shown, f"derived/{stem}.cpp", stem, derives=True))
    return tuple(found)


def _written(torch: Path, shown: str, name: str, stem: str, derives: bool) -> WrittenFile:
    text = (torch / name).read_text(encoding="utf-8")
    _, _, registration = text.partition(f"void derive_{stem}(")
    return WrittenFile(
        path=f"{shown}/{name}",
        stem=stem,
        derives=derives,
        operators=tuple(_first(_OPERATOR, text, f"{shown}/{name}")),
        headers=tuple(_first(_HEADER, text, f"{shown}/{name}")),
        registers=tuple(dict.fromkeys(_OPERATOR.findall(registration))),
    )


def _first(pattern: re.Pattern[str], text: str, path: str) -> Iterator[tuple[str, Span]]:
    """Each word that `pattern` finds, where it first stands."""
    seen: set[str] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        for match in pattern.finditer(line):
            word = match[1]
            if word not in seen:
                seen.add(word)
                yield word, Span(path=path, line=number, column=match.start(1) + 1, length=len(word))
