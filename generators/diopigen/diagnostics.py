"""Findings about a user's input: what, where, how to fix it; collected, then rendered all at once."""

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, partial
from pathlib import Path

_WIDEST = 200  # characters of a line that are shown


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """A place in a source file. Lines and columns count from 1; columns count characters."""

    path: str  # e.g. "schemas/ops/arithmetic.yaml", relative to the project's root
    line: int  # e.g. 9
    column: int  # e.g. 3
    length: int = 1  # e.g. 8, characters under the caret

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


class Severity(Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"  # worth knowing, not a fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding. `code` is stable and listed in docs/diagnostics.md."""

    severity: Severity
    code: str  # e.g. "unknown-key"
    message: str  # e.g. "'add' has no property 'varients'"
    span: Span
    hint: str | None = None  # e.g. "did you mean 'variants'?"
    related: tuple[tuple[str, Span], ...] = ()  # e.g. (("the first is here", span),)
    about: tuple[str, ...] = field(default=(), compare=False)  # e.g. ("diopiAdd",): what another part should define


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a file that others refer to by its names; it ends where the file's next part begins."""

    span: Span  # of its first line
    names: frozenset[str]  # e.g. {"add", "diopiAdd", "diopiAddInp"}
    readable: bool = True  # else it may define any other name, too


@dataclass(slots=True)
class Diagnostics:
    """The findings of one run, in the order they were made."""

    found: list[Diagnostic] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    _known: set[Diagnostic] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._known = set(self.found)

    def error(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str | None = None,
        related: tuple[tuple[str, Span], ...] = (),
        about: tuple[str, ...] = (),
    ) -> None:
        """Add an error; the run's exit code is then 1."""
        self._add(Severity.ERROR, code, message, span, hint, related, about)

    def warning(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str | None = None,
        related: tuple[tuple[str, Span], ...] = (),
        about: tuple[str, ...] = (),
    ) -> None:
        """Add a warning; the run goes on and still exits with 0."""
        self._add(Severity.WARNING, code, message, span, hint, related, about)

    def note(
        self,
        code: str,
        message: str,
        span: Span,
        hint: str | None = None,
        related: tuple[tuple[str, Span], ...] = (),
        about: tuple[str, ...] = (),
    ) -> None:
        """Add a piece of information; nobody has to do anything."""
        self._add(Severity.NOTE, code, message, span, hint, related, about)

    def _add(
        self,
        severity: Severity,
        code: str,
        message: str,
        span: Span,
        hint: str | None,
        related: tuple[tuple[str, Span], ...],
        about: tuple[str, ...],
    ) -> None:
        finding = Diagnostic(
            severity=severity, code=code, message=message, span=span, hint=hint, related=related, about=about
        )
        self.add(finding)

    def add(self, *findings: Diagnostic) -> None:
        """Add findings that were made elsewhere; what is there already is not added again."""
        for finding in findings:
            if finding not in self._known:
                self._known.add(finding)
                self.found.append(finding)

    @property
    def failed(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self.found)

    @property
    def causes(self) -> list[Diagnostic]:
        """What was found, without what only follows from an error in another part."""
        return without_consequences(self.found, self.parts) if self.failed else self.found

    def ordered(self) -> list[Diagnostic]:
        return sorted(self.causes, key=lambda d: (d.span, d.code, d.message))


def without_consequences(found: list[Diagnostic], parts: list[Part]) -> list[Diagnostic]:
    """The findings that are not about a name which a part with an error should define.

    A part fails by an error about no failed part, or about one that failed so; of a circle nothing is left out.
    """
    starts = sorted(parts, key=lambda part: part.span)

    def part_of(span: Span) -> Part | None:
        at = bisect_right(starts, (span.path, span.line), key=lambda part: (part.span.path, part.span.line))
        return starts[at - 1] if at and starts[at - 1].span.path == span.path else None

    errors = [(finding, part_of(finding.span)) for finding in found if finding.severity is Severity.ERROR]
    with_errors = {part.span: part for _, part in errors if part is not None}.values()
    everywhere = frozenset(name for part in parts for name in part.names)

    def follows(finding: Diagnostic, failed: Iterable[Part]) -> bool:
        own, unknown = part_of(finding.span), not everywhere.issuperset(finding.about)
        others = (part for part in failed if part is not own)
        return any(not part.names.isdisjoint(finding.about) or (unknown and not part.readable) for part in others)

    failed = {part.span: part for finding, part in errors if part is not None and not follows(finding, with_errors)}
    size = -1
    while size != len(failed):
        size = len(failed)
        failed |= {
            part.span: part for finding, part in errors if part is not None and follows(finding, [*failed.values()])
        }
    return [finding for finding in found if not follows(finding, failed.values())]


Styled = Callable[[Severity | None, str], str]


def _plain(style: Severity | None, text: str) -> str:
    return text


def render_human(diagnostics: Diagnostics, root: Path, styled: Styled = _plain) -> Iterator[str]:
    """Lines for a terminal: the place, the line of source, a caret, the hint.

    `styled` marks a text as what a severity is about, or as a place.
    """
    source = cache(lambda path: _source_lines(root / path))
    for finding in diagnostics.ordered():
        severity = finding.severity
        head = styled(severity, f"{severity.value}[{finding.code}]:")
        yield f"{styled(None, f'{finding.span}:')} {head} {finding.message}"
        yield from _excerpt(finding.span, finding.hint, source(finding.span.path), partial(styled, severity))
        for text, span in finding.related:
            yield f"{styled(None, f'{span}:')} {styled(Severity.NOTE, 'note:')} {text}"
            yield from _excerpt(span, None, source(span.path), partial(styled, Severity.NOTE))


def render_json(diagnostics: Diagnostics) -> Iterator[str]:
    """One JSON object a line, for editors and scripts."""
    for finding in diagnostics.ordered():
        yield json.dumps(
            {
                "severity": finding.severity.value,
                "code": finding.code,
                "message": finding.message,
                "path": finding.span.path,
                "line": finding.span.line,
                "column": finding.span.column,
                "length": finding.span.length,
                "hint": finding.hint,
                "related": [{"message": text, "at": str(span)} for text, span in finding.related],
            },
            ensure_ascii=False,
        )


_GITHUB = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render_github(diagnostics: Diagnostics) -> Iterator[str]:
    """Workflow commands that annotate the lines of a change."""
    for finding in diagnostics.ordered():
        text = finding.message + (f"; {finding.hint}" if finding.hint else "")
        escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        span = finding.span
        yield (
            f"::{_GITHUB[finding.severity]} file={span.path},line={span.line},col={span.column},"
            f"title={finding.code}::{escaped}"
        )


def _excerpt(span: Span, hint: str | None, lines: list[str], marked: Callable[[str], str]) -> Iterator[str]:
    if not 1 <= span.line <= len(lines):
        if hint:
            yield f"      {hint}"
        return
    whole = lines[span.line - 1].replace("\t", " ")
    cut = max(0, span.column - _WIDEST // 2) if len(whole) > _WIDEST else 0
    text = whole[cut : cut + _WIDEST]
    column = span.column - cut
    yield f"{span.line:6} | {text}"
    carets = "^" * max(1, min(span.length, len(text) - column + 1))
    yield f"       | {' ' * (column - 1)}{marked(carets)}" + (f" {hint}" if hint else "")


def _source_lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").split("\n") if path.is_file() else []
    except OSError:
        return []
