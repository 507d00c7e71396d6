"""Binds ATen overloads to the functions of the ops that name them under `aten:`."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from diopigen.diagnostics import Span
from diopigen.model.aten import Binding, Declared, Overload, Provision
from diopigen.model.expr import Call, Expr, names
from diopigen.model.op import AtenClause, Function, Op
from diopigen.model.program import Program
from diopigen.passes.aten.bind_graphs import bind_graphs
from diopigen.passes.aten.catalog import Catalog, report_unknown
from diopigen.passes.aten.drift import Drift
from diopigen.passes.aten.join import are_apart, merged
from diopigen.passes.aten.routes import Mismatch, routes
from diopigen.text import suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """One op asks for one overload."""

    op: Op
    clause: AtenClause
    written: str  # e.g. "add": the name in the clause
    overload: Overload
    exact: bool  # named with its overload name; a packet gives way to it
    backward: bool
    span: Span


def bind_aten(program: Program, catalog: Catalog, drift: Drift) -> Program:
    """Fills `bindings`, in the order of ops, and `drifted`: what only another of the supported releases would bind.

    An overload that no release would bind is an error, and left out, too.
    """
    claims: list[_Claim] = []
    for op in program.ops:
        for clause in op.aten:
            claims += _claims(op, clause, catalog, drift)
    binder = _Binder(program=program, catalog=catalog, drift=drift)
    for span, group in _by_name(claims):
        binder.bind(span, group)
    for op in program.ops:
        for clause in op.aten:
            for name, span in (*clause.overloads, *clause.backward):
                for overload, reason in _lost_siblings(name, catalog, drift):
                    if overload not in binder.bindings:
                        drift.leave_out(overload, op.name, reason, span)
    graphs = bind_graphs(program, {name: b.op for name, b in binder.bindings.items()}, catalog, drift)
    bindings = tuple(binder.bindings.values())
    drifted, one_device = tuple(drift.found.values()), tuple(catalog.one_device())
    return replace(program, bindings=bindings, compiled=graphs, one_device=one_device, drifted=drifted)


def _by_name(claims: list[_Claim]) -> Iterator[tuple[Span, list[_Claim]]]:
    """Claims of one written name together, exact names first, so that a packet takes what they leave."""
    grouped: dict[Span, list[_Claim]] = {}
    for claim in sorted(claims, key=lambda c: not c.exact):
        grouped.setdefault(claim.span, []).append(claim)
    yield from grouped.items()


def _claims(op: Op, clause: AtenClause, catalog: Catalog, drift: Drift) -> list[_Claim]:
    found: list[_Claim] = []
    for backward, written in ((False, clause.overloads), (True, clause.backward)):
        for name, span in written:
            # A hand-written file registers what it names; torch decomposes the rest of a packet to that.
            overloads = tuple(_named(name, catalog, composites=clause.wrapper is None))
            if not overloads and not drift.absent(name, op.name, span, partial(_is_gone, catalog)):
                report_unknown(name, span, catalog, drift.diagnostics)
            for overload, exact in overloads:
                found.append(
                    _Claim(
                        op=op,
                        clause=clause,
                        written=name,
                        overload=overload,
                        exact=exact,
                        backward=backward,
                        span=span,
                    )
                )
    _check_names(clause, [c.overload for c in found], drift)
    return found


def _is_gone(catalog: Catalog, declared: Declared) -> bool:
    return catalog.overload(declared.overload) is None


def _named(name: str, catalog: Catalog, composites: bool) -> Iterator[tuple[Overload, bool]]:
    """The overloads behind a name, each with whether it was named exactly.

    A packet has those that torch decomposes, too, if `composites` and their derivatives outlive it: a function of
    the contract that computes all of it at once is one call where torch makes several.
    """
    exact = catalog.overload(name)
    if exact is not None and "." in name:
        members = catalog.group(exact.group) if exact.group is not None else (exact,)
        yield from ((overload, True) for overload in members)
        return
    if exact is not None and exact.group is None:
        yield exact, True
    for base in (name, f"{name}_"):
        for overload in catalog.packet(base):
            decomposed = overload.implicit or (overload.provision is Provision.COMPOSITE and not composites)
            if not decomposed and overload != exact:
                yield overload, False
    if exact is not None and exact.group is not None:
        yield exact, False


def _lost_siblings(name: str, catalog: Catalog, drift: Drift) -> Iterator[tuple[str, str]]:
    """Of the structured group that `name` stands for with its overload, what the installed torch has no more.

    Without the named overload it is no group, so that the others are lost, too.
    """
    declared = drift.releases.declared(name) if "." in name else ()
    present = catalog.overload(name)
    if not declared or (present is not None and present.group is None):
        return
    for other in _siblings(name, declared, drift):
        if present is None:
            yield other.overload, f"it needs '{name}': {drift.lacks(declared)}"
        elif catalog.overload(other.overload) is None:
            yield other.overload, drift.lacks([other])


def _siblings(name: str, declared: tuple[Declared, ...], drift: Drift) -> Iterator[Declared]:
    """The other forms of an overload named with its overload name: those with its inputs."""
    for other in drift.releases.declared(name.partition(".")[0]) if declared and "." in name else ():
        if other.overload != name and _inputs(other) == _inputs(declared[0]):
            yield other


def _inputs(declared: Declared) -> list[str]:
    return [arg.type for arg in declared.args if not arg.out]


def _check_names(clause: AtenClause, overloads: list[Overload], drift: Drift) -> None:
    """Each ATen argument that a clause names is an argument of at least one of its overloads, in some release."""
    known = {a.name for o in overloads for a in o.args}
    written = {
        "rename": [aten for _, aten in clause.rename],
        "require": [aten for aten, _ in clause.require],
        "rank": [aten for aten, _ in clause.ranks],
        "ignore": list(clause.ignore),
        "promote": list(clause.promote),
        "rounds": list(clause.rounds),
        "channels_of": list(clause.channels_of),
        "checks": [name for check, _ in clause.checks for name in names(check)],
        "raises": list(names(clause.raises)) if isinstance(clause.raises, Call) else [],
    }
    for key, words in written.items():
        for word in words if overloads else ():
            if word not in known and not _known_elsewhere(word, clause, drift):
                message = f"'{key}' names '{word}', which none of the operators has"
                drift.diagnostics.error("aten-argument", message, clause.span, suggestion(word, known))


def _checks(clause: AtenClause, overload: Overload) -> tuple[Expr, ...]:
    """A check is made by the overloads that have all of its arguments: one of `out` is none of the functional form."""
    return tuple(c for c, _ in clause.checks if all(overload.arg(name) is not None for name in names(c)))


def _known_elsewhere(word: str, clause: AtenClause, drift: Drift) -> bool:
    for name, _ in (*clause.overloads, *clause.backward):
        declared = drift.releases.declared(name)
        if any(arg.name == word for d in (*declared, *_siblings(name, declared, drift)) for arg in d.args):
            return True
    return False


@dataclass(slots=True, kw_only=True)
class _Binder:
    """Collects bindings by overload, and notices when two ops ask for the same."""

    program: Program
    catalog: Catalog
    drift: Drift
    bindings: dict[str, Binding] = field(default_factory=dict)
    exact: dict[str, bool] = field(default_factory=dict)

    def bind(self, span: Span, claims: list[_Claim]) -> None:
        """Binds what one written name stands for; a packet is content with the forms that fit."""
        results = [(claim, self._binding(claim)) for claim in claims]
        bound = [(claim, b) for claim, b in results if isinstance(b, Binding)]
        for claim, binding in bound:
            self._add(claim, binding)
        drifted = [claim for claim, b in results if isinstance(b, Mismatch) and self._changed(claim)]
        gone = self._gone(claims[0])
        if not bound and not drifted and not gone:
            # The overload without a name of its own is the one that the reader knows.
            mismatch = min(results, key=lambda r: ("." in r[0].overload.name, r[0].overload.inplace))[1]
            assert isinstance(mismatch, Mismatch)
            self.drift.diagnostics.error(mismatch.code, mismatch.message, span, mismatch.hint)

    def _gone(self, claim: _Claim) -> bool:
        """Whether another release has an overload of the packet that the clause fits and the installed one lacks."""

        def wanted(declared: Declared) -> bool:
            if self.catalog.overload(declared.overload) is not None:
                return False
            overload = replace(claim.overload, name=declared.overload, args=declared.args, returns=declared.returns)
            return isinstance(self._binding(replace(claim, overload=overload)), Binding)

        return self.drift.absent(claim.written, claim.op.name, claim.span, wanted)

    def _changed(self, claim: _Claim) -> bool:
        """Whether the clause fits the overload as another release declares it; then it is left out, and no error."""

        def fits(overload: Overload) -> bool:
            return isinstance(self._binding(replace(claim, overload=overload)), Binding)

        return self.drift.changed(claim.overload, claim.op.name, claim.span, fits)

    def _binding(self, claim: _Claim) -> Binding | Mismatch:
        op, clause, overload = claim.op, claim.clause, claim.overload
        if overload.implicit:
            return Mismatch(
                code="aten-composite",
                message=f"'{overload.name}' is decomposed by torch, and a kernel would lose its derivative",
                hint="leave it out: torch calls the operators that it decomposes to",
            )
        if clause.wrapper is not None:
            symbols = (clause.function,) if clause.function else tuple(f.symbol for f in self._of(op))
            # Where no generated wrapper does, the binding also tells what the functions compute, if it can.
            alone = all(each.wrapper is not None for each in op.aten if each.overloads or each.backward)
            told = routes(op, clause, overload, self._functions(op, clause), claim.backward) if alone else ()
            return Binding(
                overload=overload,
                op=op.name,
                routes=() if isinstance(told, Mismatch) else told,
                wrapper=clause.wrapper,
                symbols=symbols,
                span=claim.span,
            )
        found = routes(op, clause, overload, self._functions(op, clause), claim.backward)
        if isinstance(found, Mismatch):
            return found
        return Binding(
            overload=overload,
            op=op.name,
            routes=found,
            wrapper=None,
            symbols=tuple(dict.fromkeys(r.symbol for r in found)),
            span=claim.span,
            checks=_checks(clause, overload),
        )

    def _functions(self, op: Op, clause: AtenClause) -> tuple[Function, ...]:
        return self._of(op) if clause.function is None else self.program.functions

    def _of(self, op: Op) -> tuple[Function, ...]:
        return self.program.forms(op.name)

    def _add(self, claim: _Claim, binding: Binding) -> None:
        name = binding.overload.name
        first = self.bindings.get(name)
        if first is None:
            self.bindings[name] = binding
            self.exact[name] = claim.exact
        elif _joins(first, binding):
            self.bindings[name] = merged(first, binding)
        elif first.op != binding.op and claim.exact == self.exact[name]:
            self.drift.diagnostics.error(
                "aten-bound-twice",
                f"'{name}' is already bound to '{first.op}'",
                claim.span,
                "name other overloads, or give one of them 'require'",
                (("the first is here", first.span),),
            )


def _joins(first: Binding, second: Binding) -> bool:
    """Whether the routes of both serve the overload: other clauses of one op, or of ops that exclude one another."""
    if first.op == second.op:
        return first.span != second.span and first.routes != second.routes
    return are_apart(first, second)
