"""The rules of patterns: every name means something, and what an idiom becomes reads only what a spelling binds."""

from collections.abc import Callable, Iterator

from diopigen.aten.catalog import Catalog
from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.expr import Call, Expr, calls, names
from diopigen.model.pattern import ANYTHING, OWN_CALLS, WORDS, Pattern, Written
from diopigen.model.program import Program
from diopigen.passes.aten.drift import Drift
from diopigen.passes.contract.verify_kernels import Finding
from diopigen.text import suggestion


def check_names(patterns: tuple[Pattern, ...], program: Program, diagnostics: Diagnostics) -> tuple[Pattern, ...]:
    """The patterns that break no rule which the schemas alone decide."""
    return _checked(patterns, lambda pattern: _findings(pattern, program), diagnostics)


def check_operators(patterns: tuple[Pattern, ...], catalog: Catalog, drift: Drift) -> tuple[Pattern, ...]:
    """The patterns whose operators the installed torch has. A warning tells of those that only another release has."""
    kept = []
    for pattern in patterns:
        reason = next(_drifted(pattern, catalog, drift), None)
        if reason is None:
            kept.append(pattern)
        else:
            message = f"the pattern '{pattern.name}' is left out: {reason}"
            drift.diagnostics.warning("aten-drifted", message, pattern.span, "the others are not affected")
    return _checked(tuple(kept), lambda pattern: _operators(pattern, catalog), drift.diagnostics)


def _checked(
    patterns: tuple[Pattern, ...], rule: Callable[[Pattern], Iterator[Finding]], diagnostics: Diagnostics
) -> tuple[Pattern, ...]:
    kept = []
    for pattern in patterns:
        found = tuple(rule(pattern))
        for finding in found:
            diagnostics.error(finding.code, finding.message, finding.span, finding.hint, about=finding.about)
        if not found:
            kept.append(pattern)
    return tuple(kept)


def _findings(pattern: Pattern, program: Program) -> Iterator[Finding]:
    for place in pattern.by:
        if program.op(place.text) is None:
            hint = suggestion(place.text, [op.name for op in program.ops])
            message = f"there is no op '{place.text}'"
            yield Finding(code="unknown-op", message=message, span=place.span, hint=hint, about=(place.text,))
    inputs, parts = [i.name for i in pattern.inputs], [name for name, _ in pattern.parts]
    types = [*(name for name, _ in pattern.where), *(dtype.name for dtype in program.dtypes.types)]
    for written in pattern.expressions:
        yield from _unknown(written, [*inputs, *parts, *types, *WORDS, ANYTHING], pattern)
    for written in (*pattern.when, *((pattern.becomes,) if pattern.becomes is not None else ())):
        yield from _unknown(written, [*inputs, *parts, *types, *WORDS], pattern)
    for place in pattern.without_gradient:
        if place.text not in inputs:
            yield _no_input(pattern, place.text, place.span)
    circles = tuple(_circles(pattern))
    yield from circles if circles else _unbound(pattern)
    yield from _examples(pattern)


def _unknown(written: Written, known: list[str], pattern: Pattern) -> Iterator[Finding]:
    for name in names(written.expr):
        if name not in known:
            yield Finding(
                code="unknown-arg",
                message=f"'{pattern.name}' has no input and no part '{name}' that is known here",
                span=written.place.word(name),
                hint=suggestion(name, known),
            )


def _circles(pattern: Pattern) -> Iterator[Finding]:
    """A part may name only those before it."""
    before: set[str] = set()
    names_of_parts = {name for name, _ in pattern.parts}
    for part, spellings in pattern.parts:
        for written in spellings:
            for name in names(written.expr):
                if name in names_of_parts and name not in before:
                    yield Finding(
                        code="part-too-early",
                        message=f"'{part}' names the part '{name}', which is not defined before it",
                        span=written.place.word(name),
                        hint="write parts in the order that they need each other",
                    )
        before.add(part)


def _unbound(pattern: Pattern) -> Iterator[Finding]:
    """What a spelling neither names nor decides needs a default."""
    parts = dict(pattern.parts)

    def bound(expr: Expr) -> set[str]:
        """The inputs that every way to write `expr` names."""
        found: set[str] = set()
        for name in names(expr):
            ways = parts.get(name)
            found |= {name} if ways is None else set.intersection(*(bound(way.expr) for way in ways))
        return found

    for spelling in pattern.match:
        named = bound(spelling.written.expr) | {name for name, _ in spelling.sets}
        for given in pattern.inputs:
            if not given.has_default and given.name not in named:
                yield Finding(
                    code="unbound-input",
                    message=f"this spelling of '{pattern.name}' does not set '{given.name}'",
                    span=spelling.written.place.span,
                    hint=f"give '{given.name}' a default under 'inputs', or a value under 'sets'",
                )


def _examples(pattern: Pattern) -> Iterator[Finding]:
    known = {given.name for given in pattern.inputs}
    rows = [*pattern.examples, *(spelling.sets for spelling in pattern.match)]
    for name in dict.fromkeys(name for row in rows for name, _ in row):
        if name not in known:
            yield _no_input(pattern, name, pattern.span)


def _no_input(pattern: Pattern, name: str, span: Span) -> Finding:
    hint = suggestion(name, [given.name for given in pattern.inputs])
    return Finding(code="unknown-arg", message=f"'{pattern.name}' has no input '{name}'", span=span, hint=hint)


def _drifted(pattern: Pattern, catalog: Catalog, drift: Drift) -> Iterator[str]:
    """Why calls fit the operators of no overload of the installed torch, but of another release."""
    for _, call in _calls(pattern):
        known = [d for d in drift.releases.declared(call.function) if len(d.args) >= len(call.args)]
        overloads = catalog.packet(call.function)
        if known and call.function not in OWN_CALLS and all(len(call.args) > len(o.args) for o in overloads):
            yield drift.differs(known) if overloads else drift.lacks(known)


def _calls(pattern: Pattern) -> Iterator[tuple[Written, Call]]:
    extra = (*pattern.when, *((pattern.becomes,) if pattern.becomes is not None else ()))
    for written in (*pattern.expressions, *extra):
        for call in calls(written.expr):
            yield written, call


def _operators(pattern: Pattern, catalog: Catalog) -> Iterator[Finding]:
    for written, call in _calls(pattern):
        if call.function in OWN_CALLS:
            arity = OWN_CALLS[call.function]
            if arity is not None and arity != len(call.args):
                yield Finding(
                    code="wrong-arity",
                    message=f"'{call.function}' takes {arity} arguments, not {len(call.args)}",
                    span=written.place.word(call.function),
                )
            continue
        overloads = catalog.packet(call.function)
        if not overloads:
            yield Finding(
                code="unknown-function",
                message=f"torch has no operator '{call.function}'",
                span=written.place.word(call.function),
                hint=suggestion(call.function, [*catalog.packets, *OWN_CALLS]),
            )
        elif all(len(call.args) > len(overload.args) for overload in overloads):
            yield Finding(
                code="wrong-arity",
                message=f"no overload of '{call.function}' takes {len(call.args)} arguments",
                span=written.place.word(call.function),
            )
