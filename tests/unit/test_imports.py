"""Folders stay small, and no module is imported by what it imports; pyproject.toml has the floors."""

from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "diopigen": "generators/diopigen",
    "diopi_conformance": "conformance/diopi_conformance",
    "op_tools": "python/op_tools/op_tools",
    "dicp": "python/dicp/dicp",
}
MODULES = 15  # of a folder, at most
# Folders that hold more: a list that may only shrink.
LARGER = {
    "conformance/diopi_conformance/references": 33,
    "python/dicp/dicp": 25,
    "python/op_tools/op_tools": 29,
}


def test_no_folder_holds_more_modules_than_one_finds_at_a_glance() -> None:
    modules = (path for folder in PACKAGES.values() for path in (ROOT / folder).rglob("*.py"))
    held = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules if path.name != "__init__.py")
    assert {folder: count for folder, count in held.items() if count > MODULES} == LARGER


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_is_imported_by_what_it_imports(package: str) -> None:
    graph = grimp.build_graph(package, cache_dir=None, exclude_type_checking_imports=True)
    TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}).prepare()
