"""Writes generators/README.md, a line for each module from its docstring: `python -m tools.modules_page`.

With --check it writes nothing, and the exit code is 1 if the page would change.
"""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "generators" / "diopigen"
PAGE = PACKAGE.parent / "README.md"

_HEAD = """\
# The generator, module by module

Schemas are read by `source`, become the records of `model`, are completed and checked by `passes`, and are printed by
`targets`; `pipeline.py` has the order. [docs/architecture.md](../docs/architecture.md) tells where a change belongs.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.modules_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page would change")
    check = parser.parse_args().check
    text = "".join(f"{line}\n" for line in page())
    if check:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != text:
            print("generators/README.md is not up to date; run 'python -m tools.modules_page'", file=sys.stderr)
        return int(current != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


def page() -> Iterator[str]:
    """The lines of the page: folders, and the modules of each."""
    yield from _HEAD.splitlines()
    for folder in (PACKAGE, *sorted(path for path in PACKAGE.rglob("*") if path.is_dir())):
        modules = [path for path in sorted(folder.glob("*.py")) if path.name not in ("__init__.py", "__main__.py")]
        if modules:
            package = folder / "__init__.py"
            yield from ("", f"## {folder.relative_to(PACKAGE.parent).as_posix()}", "")
            if package.is_file() and (said := _says(package)):
                yield from (said, "")
            yield from ("| | |", "|---|---|")
            yield from (f"| `{path.name}` | {_says(path)} |" for path in modules)


def _says(path: Path) -> str:
    """The first sentence of the module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", r"\|")


if __name__ == "__main__":
    sys.exit(main())
