"""Tells what drifted, which only another release of torch would bind, from what is wrong under every release."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.aten import Declared, Drifted, Overload


class Releases(Protocol):
    """The schemas of the supported releases; `diopigen.aten.releases` has the real ones."""

    def declared(self, name: str) -> tuple[Declared, ...]: ...
    def spelled(self, struct: str) -> tuple[Declared, ...]: ...


@dataclass(slots=True, kw_only=True)
class Drift:
    """Collects the overloads that are left out under the installed release, with a warning for each."""

    release: str  # e.g. "2.14", the installed one
    releases: Releases
    diagnostics: Diagnostics
    found: dict[str, Drifted] = field(default_factory=dict)  # overload -> why it is left out

    def absent(self, name: str, op: str, span: Span, wanted: Callable[[Declared], bool] = lambda _: True) -> bool:
        """Whether a supported release has overloads of `name` that the installed one lacks and that are `wanted`.

        Then each is left out.
        """
        known: dict[str, list[Declared]] = {}
        for declared in filter(wanted, self.releases.declared(name)):
            known.setdefault(declared.overload, []).append(declared)
        for overload, declarations in known.items():
            self.leave_out(overload, op, self.lacks(declarations), span)
        return bool(known)

    def changed(self, overload: Overload, op: str, span: Span, fits: Callable[[Overload], bool]) -> bool:
        """Whether `overload`, which cannot be bound, could be as another release declares it; then it is left out."""
        others = [d for d in self.differing(overload) if fits(replace(overload, args=d.args, returns=d.returns))]
        if others:
            self.leave_out(overload.name, op, self.differs(others), span)
        return bool(others)

    def differing(self, overload: Overload) -> list[Declared]:
        """The supported releases that declare `overload` with other arguments or results."""
        types = [r.type for r in overload.returns]
        return [
            d
            for d in self.releases.declared(overload.name)
            if d.overload == overload.name and (d.args != overload.args or [r.type for r in d.returns] != types)
        ]

    def lacks(self, known: Sequence[Declared]) -> str:
        """e.g. "torch 2.14 has no such operator; torch 2.12 and 2.13 have relu(Tensor self) -> Tensor"."""
        have = "has" if len({d.release for d in known}) == 1 else "have"
        return f"torch {self.release} has no such operator; {_named(known)} {have} {known[0].schema}"

    def differs(self, known: Sequence[Declared]) -> str:
        """e.g. "torch 2.14 declares it differently from torch 2.13: relu(Tensor self) -> Tensor"."""
        return f"torch {self.release} declares it differently from {_named(known)}: {known[0].schema}"

    def leave_out(self, overload: str, op: str | None, reason: str, span: Span) -> None:
        """Warns, once, and keeps it for the list that the backend has at run time."""
        if overload in self.found:
            return
        self.found[overload] = Drifted(overload=overload, op=op, reason=reason)
        self.diagnostics.warning(
            "aten-drifted", f"'{overload}' is left out: {reason}", span, "the others are not affected"
        )


def _named(declarations: Sequence[Declared]) -> str:
    """e.g. "torch 2.12 and 2.13", the oldest first."""
    *others, last = dict.fromkeys(d.release for d in reversed(declarations))
    return f"torch {', '.join(others)} and {last}" if others else f"torch {last}"
