"""What this checkout uses of torch beside its operators: names of Python, headers, and virtual functions of C++."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from diopigen.diagnostics import Span

_PYTHON = ("python", "conformance", "demo", "benchmarks", "tests", "generators/diopigen/vocabulary")
_CPP = ("runtime_cpp/torch", "runtime_cpp/client")
_OWN = ("torch.dipu", "torch.ops")  # our module, and operators, which have a record of their own
_INCLUDE = re.compile(r"^#include <((?:ATen|c10|torch|caffe2)/[^>]+)>", re.MULTILINE)
_DERIVED = re.compile(r"\b(?:class|struct) (?:[A-Z_]+ )?\w+(?: final)?\s*:\s*public ((?:c10d?|at|torch)::[\w:]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Each where it first stands."""

    names: dict[str, Span]  # e.g. "torch._dynamo.reset"
    headers: dict[str, Span]  # e.g. "c10/core/Allocator.h"
    bases: dict[str, Span]  # e.g. "c10::GeneratorImpl"


def uses(root: Path) -> Uses:
    """Of the checkout at `root`."""
    names: dict[str, Span] = {}
    for path in _files(root, _PYTHON, ".py"):
        for name, span in _names(path, root):
            names.setdefault(name, span)
    headers: dict[str, Span] = {}
    bases: dict[str, Span] = {}
    for path in (*_files(root, _CPP, ".h"), *_files(root, _CPP, ".cpp")):
        text = path.read_text(encoding="utf-8")
        for found, pattern in ((headers, _INCLUDE), (bases, _DERIVED)):
            for m in pattern.finditer(text):
                found.setdefault(m[1], _span(path, root, text, m.start(1), len(m[1])))
    return Uses(names=names, headers=headers, bases=bases)


def _files(root: Path, folders: Iterable[str], suffix: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((root / folder).rglob(f"*{suffix}"))


def _span(path: Path, root: Path, text: str, place: int, length: int) -> Span:
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    return Span(path=path.relative_to(root).as_posix(), line=line, column=column, length=length)


def _names(path: Path, root: Path) -> Iterator[tuple[str, Span]]:
    """The dotted names below torch that a file of Python imports, or reaches by attributes of what it imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known: dict[str, str] = {}  # names of the file -> what they are of torch
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in (a for a in node.names if a.name.partition(".")[0] == "torch"):
                known[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                yield from _found(alias.name, node, path, root)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").partition(".")[0] == "torch":
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield from _found(f"{node.module}.{alias.name}", node, path, root)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (name := _dotted(node)) is not None:
            head, _, rest = name.partition(".")
            if head in known:
                yield from _found(f"{known[head]}.{rest}", node, path, root)


def _dotted(node: ast.expr) -> str | None:
    """e.g. "torch.nn.Module" for such an attribute of a name; None for one of anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def _found(name: str, node: ast.stmt | ast.expr, path: Path, root: Path) -> Iterator[tuple[str, Span]]:
    if "." in name and not any(name == own or name.startswith(f"{own}.") for own in _OWN):
        place = Span(path=path.relative_to(root).as_posix(), line=node.lineno, column=node.col_offset + 1, length=1)
        yield name, place
