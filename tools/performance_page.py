"""Writes the tables of docs/performance.md from benchmarks/results: `python -m tools.performance_page`.

--check compares. A benchmark that was not run has no file there, and its part of the page says how to run it.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.marked_part import MarkedPart, write_parts

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "benchmarks" / "results"
MOST = 80  # figures of a table; the others are in the file
_BEGIN = MarkedPart(PAGE, "@", "performance_page").begin


def main() -> int:
    """Every part that the page has."""
    before, after = _BEGIN.split("@")
    names = [
        line.removeprefix(before).removesuffix(after)
        for line in PAGE.read_text(encoding="utf-8").splitlines(keepends=True)
        if line.startswith(before) and line.endswith(after)
    ]
    parts = {MarkedPart(PAGE, name, "performance_page"): "\n".join(_lines(name)) + "\n" for name in names}
    return write_parts(parts, __doc__)


def _lines(name: str) -> Iterator[str]:
    path = RESULTS / f"{name}.json"
    if not path.exists():
        vendor = " --vendor cuda --build build/cuda" if name.endswith("_cuda") or name == "collectives" else ""
        yield f"Not measured with this version: `benchmarks/run.py {name.removesuffix('_cuda')}{vendor}`."
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    facts = found["facts"]
    processor = facts.get("processor", facts["architecture"])
    named = [facts[key] for key in ("device", "compiler") if key in facts]
    yield f"{', '.join([facts['measured'], processor, *named])}, torch {facts['torch']}, Python {facts['python']}:"
    if found["comparisons"]:
        yield from ("", "| compared | | target |", "|---|---|---|")
        for each in found["comparisons"]:
            yield f"| {_cell(each['name'])} | {_value(each['value'], each['unit'])} | {each['target']} |"
    if 0 < len(found["figures"]) <= MOST:
        yield from ("", "| measured | median | quartiles |", "|---|---|---|")
        for each in found["figures"]:
            quartiles = f"{each['low']:g} to {each['high']:g}"
            yield f"| {_cell(each['name'])} | {_value(each['median'], each['unit'])} | {quartiles} |"


def _value(number: Any, unit: str) -> str:
    return f"{number:g}{'' if unit in ('', 'x') else f' {unit}'}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
