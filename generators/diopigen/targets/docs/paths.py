"""Which page each thing has, and how pages point at one another."""

import posixpath

from diopigen.diagnostics import Span

OPERATORS = "operators/index.md"
FUNCTIONS = "functions.md"
RUNTIME = "runtime.md"


def guide_page(path: str) -> str:
    """e.g. "adding-an-op.md" for docs/adding-an-op.md, "conformance.md" for conformance/README.md."""
    return path.removeprefix("docs/").removesuffix("/README.md").removesuffix(".md").lower() + ".md"


def program_page(program: str) -> str:
    return f"commands/{program}.md"


def topic_page(topic: str) -> str:
    return f"operators/{topic}/index.md"


def operator_page(topic: str, op: str) -> str:
    stem = "index-op" if op == "index" else op  # index.md is the topic's own page
    return f"operators/{topic}/{stem}.md"


def vendor_page(vendor: str) -> str:
    return f"vendors/{vendor}.md"


def coverage_page(vendor: str) -> str:
    """The interactive report, a page that stands by itself."""
    return f"vendors/{vendor}-coverage.html"


def source_page(path: str) -> str:
    """The page that shows the file `path`. e.g. "sources/schemas/ops/add.yaml.md"."""
    return f"sources/{path}.md"


def line_anchor(line: int) -> str:
    """The anchor that the highlighter gives to a line."""
    return f"__codelineno-0-{line}"


def relative(start: str, target: str, anchor: str = "") -> str:
    """The link from page `start` to page `target`."""
    path = posixpath.relpath(target, posixpath.dirname(start) or ".")
    return f"{path}#{anchor}" if anchor else path


def place(start: str, span: Span, shown: frozenset[str], text: str | None = None) -> str:
    """A link to the line of `span`, where the site shows that file; else the place alone."""
    text = text or f"{span.path}:{span.line}"
    if span.path not in shown:
        return f"`{text}`"
    return f"[{text}]({relative(start, source_page(span.path), line_anchor(span.line))})"
