"""The part of a page that a tool writes, between two marks; the rest is written by hand."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class MarkedPart:
    """`name` and `tool` are in the marks."""

    page: Path
    name: str  # e.g. "tiers"
    tool: str  # e.g. "test_tiers", a module of tools/

    @property
    def begin(self) -> str:
        return f"<!-- {self.name}: written by tools/{self.tool}.py -->\n"

    @property
    def end(self) -> str:
        return f"<!-- end of {self.name} -->\n"

    def replaced(self, page: str, text: str) -> str:
        """The page with another text between the marks."""
        head, _, rest = page.partition(self.begin)
        _, _, tail = rest.partition(self.end)
        return f"{head}{self.begin}\n{text}\n{self.end}{tail}"

    def main(self, description: str | None, text: str) -> int:
        """Writes the part; the exit code is 1 where --check finds another text than `text`."""
        return write_parts({self: text}, description)


def write_parts(texts: dict[MarkedPart, str], description: str | None) -> int:
    """Writes the parts of one tool; the exit code is 1 where --check finds others than `texts`."""
    tool = next(iter(texts)).tool
    parser = argparse.ArgumentParser(prog=f"python -m tools.{tool}", description=description)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    options = parser.parse_args()
    for part, text in texts.items():
        before = part.page.read_text(encoding="utf-8")
        after = part.replaced(before, text)
        if options.check and after != before:
            print(
                f"{part.page.name} is not up to date with its {part.name}: run 'python -m tools.{tool}'",
                file=sys.stderr,
            )
            return 1
        if not options.check:
            part.page.write_text(after, encoding="utf-8")
    return 0
