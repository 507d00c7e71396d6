"""The schemas that overloads are looked up in, and what is said where there is none."""

from collections.abc import Iterable
from typing import Protocol

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.aten import Overload
from diopigen.text import suggestion


class Catalog(Protocol):
    """The schemas of the installed torch; `diopigen.aten.catalog` has the real one."""

    def overload(self, name: str) -> Overload | None: ...
    def packet(self, base: str) -> tuple[Overload, ...]: ...
    def group(self, primary: str) -> tuple[Overload, ...]: ...
    def names(self) -> Iterable[str]: ...
    def members(self) -> frozenset[str]: ...
    def one_device(self) -> Iterable[str]: ...


def report_unknown(name: str, span: Span, catalog: Catalog, diagnostics: Diagnostics) -> None:
    base = name.partition(".")[0]
    known = [o.name for o in catalog.packet(base)] or list(catalog.names())
    if known and "." not in name and catalog.packet(name):
        hint = f"torch decomposes it; name one overload, e.g. '{known[0]}', to bind it anyway"
        diagnostics.error("aten-composite", f"no overload of '{name}' needs a kernel", span, hint)
        return
    message = f"this torch has no operator '{name}'"
    diagnostics.error("aten-unknown", message, span, suggestion(name, known))
