"""Writes docs/diagnostics.md: each code with its meaning, how to fix it, and a message from a test.

`--check` writes nothing and exits with 1 if the page is not up to date. A code without a meaning, or a meaning
without a code, is an error in both.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from diopigen.commands.rules import Rule, rules

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "diagnostics.md"
MEANINGS = ROOT / "docs" / "diagnostics.yaml"
SOURCES = ROOT / "generators" / "diopigen"
EXAMPLES = ROOT / "tests" / "diagnostics"

# How a code is given to a finding, e.g. diagnostics.error("unknown-key", ...), Finding(code="no-shape", ...)
_GIVEN = re.compile(r'(?:\.(?P<severity>error|warning|note)\(\s*|code=|_Bad\(\s*)"(?P<code>[a-z0-9-]+)"')

_HEAD = """\
# Diagnostics

`diopigen` reports findings in this form:

```
file:line:column: severity[code]: what is wrong
     9 | the line
       | ^^^^ what to do
```

with a code from this page. All findings of a run are reported at once; the exit code is 1 if any is an error, and
warnings do not affect it. `--error-format json` prints one object per line for editors, `--error-format github`
annotates changes on GitHub. `diopigen lint --list` lists the rules.
"""


def main() -> int:
    """The exit code: 0, or 1 if the page is not up to date or codes and meanings do not match."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the page would change")
    options = parser.parse_args()
    severities = codes()
    meanings = rules(MEANINGS)
    mismatches = list(mismatched(severities, meanings))
    if mismatches:
        print("\n".join(mismatches), file=sys.stderr)
        return 1
    text = page(severities, meanings)
    if options.check:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != text:
            print("docs/diagnostics.md is not up to date; run tools/diagnostics_doc.py", file=sys.stderr)
        return int(current != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


def codes() -> dict[str, str]:
    """Every code that the sources give, with the severities that it comes with."""
    found: dict[str, set[str]] = {}
    for source in sorted(SOURCES.rglob("*.py")):
        for match in _GIVEN.finditer(source.read_text(encoding="utf-8")):
            found.setdefault(match["code"], set()).add(match["severity"] or "error")
    return {code: " or ".join(sorted(severities)) for code, severities in found.items()}


def mismatched(severities: Mapping[str, str], meanings: Sequence[Rule]) -> Iterator[str]:
    """A line for each code that has no meaning, and for each meaning that has no code."""
    explained = {rule.code for rule in meanings}
    for code in sorted(severities.keys() - explained):
        yield f"docs/diagnostics.yaml does not explain '{code}'"
    for code in sorted(explained - severities.keys()):
        yield f"docs/diagnostics.yaml explains '{code}', which nothing reports"


def page(severities: Mapping[str, str], meanings: Sequence[Rule]) -> str:
    """The whole text: a table per group, then the examples."""
    lines = [_HEAD]
    for group, members in groupby(meanings, key=lambda rule: rule.group):
        lines += [f"## {group}", "", "| rule | code | | meaning | what to do |", "|---:|---|---|---|---|"]
        for rule in members:
            cells = (str(rule.number), f"`{rule.code}`", severities[rule.code], rule.means, rule.fix)
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    lines += ["## Examples", "", "Messages from the tests:", ""]
    for code in sorted(severities):
        if (example := first_example(code)) is not None:
            lines += ["```", example, "```", ""]
    return "\n".join(lines)


def first_example(code: str) -> str | None:
    """The first finding of the code in a golden text of that name, with its excerpt."""
    for golden in sorted(EXAMPLES.rglob(f"{code}.txt")):
        lines = golden.read_text(encoding="utf-8").splitlines()
        starts = [i for i, line in enumerate(lines) if f"[{code}]: " in line]
        if starts:
            end = starts[0] + 1
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
            return "\n".join(lines[starts[0] : end])
    return None


if __name__ == "__main__":
    sys.exit(main())
