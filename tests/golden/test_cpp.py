"""Generated C++ reads as written by hand: its lines fit the page, and who opens a brace closes it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2 import nodes

from diopigen.commands.generate import Request, generate
from diopigen.emit.outputs import VENDOR_TARGETS
from diopigen.targets import output
from diopigen.targets.cpp.lines import WIDTH
from tests.golden.conftest import EXPECTED, ROOT, VENDORS, lay_out

_SUFFIXES = {".h", ".hpp", ".cpp"}
_TEMPLATES = sorted(
    path.relative_to(ROOT / "templates").as_posix()
    for path in (ROOT / "templates").rglob("*.j2")
    if Path(path.stem).suffix in _SUFFIXES or path.name == "parts.j2"
)


def test_no_generated_line_is_longer_than_the_page() -> None:
    files = [
        path for folder in (EXPECTED, ROOT / "generated") for path in folder.rglob("*") if path.suffix in _SUFFIXES
    ]
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted(files)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > WIDTH
    ]
    assert files and not long


def _unbalanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return True
    return depth != 0


def _own(block: nodes.Node) -> Iterator[str]:
    """The text between the statements of a block."""
    for child in block.iter_child_nodes():
        if isinstance(child, nodes.TemplateData):
            yield child.data
        elif isinstance(child, nodes.Const) and isinstance(block, nodes.Output):
            yield str(child.value)
        elif isinstance(child, nodes.Output):
            yield from _own(child)


def _blocks(node: nodes.Node) -> Iterator[list[nodes.Node]]:
    for name, value in node.iter_fields():
        if name in ("body", "else_") and isinstance(value, list):
            yield value
    for child in node.iter_child_nodes():
        yield from _blocks(child)


@pytest.mark.parametrize("name", _TEMPLATES)
def test_a_brace_opened_in_a_block_of_a_template_closes_in_it(name: str) -> None:
    text = (ROOT / "templates" / name).read_text(encoding="utf-8")
    for block in _blocks(output.environment(ROOT / "templates").parse(text)):
        own = "".join(part for node in block if isinstance(node, nodes.Output) for part in _own(node))
        assert not _unbalanced(own), own


def test_a_brace_opened_by_a_value_closes_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def balanced(value: Any) -> Any:
        assert not isinstance(value, str) or not _unbalanced(value), value
        return value

    usual = output.environment

    def checking(folder: Path) -> jinja2.Environment:
        return usual(folder).overlay(finalize=balanced)

    with monkeypatch.context() as patched:
        patched.setattr(output, "environment", checking)
        project = lay_out(tmp_path / "project")
        for vendor in VENDORS:
            targets = tuple(VENDOR_TARGETS)
            request = Request(contract=True, wrappers=True, targets=targets, vendor=vendor, error_format="github")
            assert generate(project, request) == 0
