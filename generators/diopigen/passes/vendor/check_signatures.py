"""Holds what sources define against the contract: unknown names, other parameters, two definitions of one function."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.op import Function
from diopigen.model.vendor import Implementation, Origin
from diopigen.source.vendor.sources import Definition, SourceReport
from diopigen.text import suggestion

_QUOTED = re.compile(r"'(\w+)'")  # a name in a message of clang


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """The functions that a vendor can implement, with their C parameters."""

    functions: tuple[Function, ...]
    signatures: Mapping[str, tuple[tuple[str, str], ...]]  # by symbol: type and name of each parameter
    canonical: Mapping[str, str]  # e.g. {"int64_t": "long"}
    others: frozenset[str] = frozenset()  # e.g. {"diopiGetTensorData"}: of the run-time side

    def expected(self, symbol: str) -> tuple[str, ...]:
        return tuple(self.canonical[type_] for type_, _ in self.signatures[symbol])

    def declaration(self, symbol: str) -> str:
        """e.g. "diopiError_t diopiRelu(diopiContextHandle_t ctx, ...)"."""
        params = ", ".join(f"{type_} {name}" for type_, name in self.signatures[symbol])
        return f"diopiError_t {symbol}({params})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Whose sources were searched."""

    namespace: str  # e.g. "impl::droplet"
    origin: Origin
    named: frozenset[tuple[str, str]] = frozenset()  # e.g. {("diopiAdd", "fast")}: what `implementation` asks for

    def name(self, namespace: str) -> str:
        """What `implementation` calls a namespace. e.g. "droplet", "fast" inside of it, "ascend::fast" in a base."""
        own = self.namespace.removeprefix("impl::")
        inside = namespace.removeprefix(self.namespace).removeprefix("::")
        if not inside:
            return own
        return inside if self.origin is Origin.VENDOR else f"{own}::{inside}"


def implementations(
    reports: Sequence[SourceReport], provider: Provider, contract: Contract, diagnostics: Diagnostics
) -> Iterator[Implementation]:
    """One for each function that is defined with the contract's parameters; everything else is reported.

    What a namespace inside the vendor's defines is reported only if it is asked for by its name.
    """
    partial = {report.source for report in reports if report.missing}
    _report_headers(reports, diagnostics)
    for (namespace, symbol), definitions in _grouped(reports).items():
        if not namespace and (symbol not in contract.signatures or provider.origin is Origin.PORTABLE):
            continue
        exported = all(definition.c_linkage for definition in definitions) and provider.origin is not Origin.PORTABLE
        nested = namespace != provider.namespace and not exported
        name = provider.name(provider.namespace if exported else namespace)
        asked = not nested or (symbol, name) in provider.named
        found = diagnostics if asked else Diagnostics()
        if symbol not in contract.signatures:
            _report_unknown(definitions[0], contract, found)
            continue
        fitting = [d for d in definitions if _fits(d, d.source in partial, contract)]
        if not fitting:
            _report_signature(definitions[0], definitions[0].source in partial, contract, found)
        elif not _report_twice(fitting, found) and not _report_linkage(fitting[0], exported, found):
            yield Implementation(
                symbol=symbol,
                origin=Origin.EXPORTED if exported else provider.origin,
                name=name,
                namespace=fitting[0].called,
                source=fitting[0].source,
                span=fitting[0].span,
                nested=nested,
            )


def _grouped(reports: Sequence[SourceReport]) -> dict[tuple[str, str], list[Definition]]:
    """The definitions by namespace and symbol; a header with a body is read with every source that includes it."""
    found: dict[tuple[str, str], list[Definition]] = {}
    for report in reports:
        for definition in report.definitions:
            same = found.setdefault((definition.namespace, definition.symbol), [])
            if all(definition.span != other.span for other in same):
                same.append(definition)
    return found


def _fits(definition: Definition, partial: bool, contract: Contract) -> bool:
    """With a header missing, its types read as int: then only the number of parameters is known."""
    expected = contract.expected(definition.symbol)
    if partial:
        return len(definition.types) == len(expected)
    return definition.types == expected and definition.returns == "diopiError_t"


def _report_signature(definition: Definition, partial: bool, contract: Contract, diagnostics: Diagnostics) -> None:
    symbol = definition.symbol
    expected, found = contract.expected(symbol), definition.types
    hint = f"the contract says {contract.declaration(symbol)}"
    if len(expected) != len(found):
        message = f"'{symbol}' takes {len(found)} parameters here and {len(expected)} in the contract"
    elif expected != found:
        position = next(i for i, pair in enumerate(zip(expected, found, strict=True)) if pair[0] != pair[1])
        type_, name = contract.signatures[symbol][position]
        message = (
            f"parameter {position + 1} ('{name}') of '{symbol}' is "
            f"'{definition.spelled[position]}' here and '{type_}' in the contract"
        )
    else:
        message = f"'{symbol}' returns '{definition.returns}' here and 'diopiError_t' in the contract"
    diagnostics.error("signature", message, definition.span, hint)


def _report_unknown(definition: Definition, contract: Contract, diagnostics: Diagnostics) -> None:
    """What returns no status is a helper, whatever its name begins with."""
    if definition.symbol in contract.others or definition.returns != "diopiError_t":
        return
    diagnostics.warning(
        "unknown-function",
        f"the contract has no function '{definition.symbol}', so nothing calls this one",
        definition.span,
        suggestion(definition.symbol, contract.signatures),
        about=(definition.symbol,),
    )


def _report_twice(definitions: list[Definition], diagnostics: Diagnostics) -> bool:
    for again in definitions[1:]:
        diagnostics.error(
            "duplicate-definition",
            f"'{again.symbol}' is defined twice",
            again.span,
            "remove one of them",
            (("the first is here", definitions[0].span),),
        )
    return len(definitions) > 1


def _report_linkage(definition: Definition, exported: bool, diagnostics: Diagnostics) -> bool:
    """Whether the function cannot serve."""
    if definition.inline:
        diagnostics.error(
            "inline-definition",
            f"'{definition.symbol}' is inline, so there is no code for it that the adaptor could call",
            definition.span,
            "remove 'inline' or 'constexpr', and define it in a source",
        )
    elif exported:
        diagnostics.note(
            "c-linkage",
            f"'{definition.symbol}' has C linkage, so the library exports it directly, without conversions",
            definition.span,
            'remove extern "C", and define it in the namespace of the vendor, if the adaptor should convert',
        )
    return definition.inline or (definition.c_linkage and not exported)


def _report_headers(reports: Iterable[SourceReport], diagnostics: Diagnostics) -> None:
    """A warning for each header, however many sources include it."""
    first: dict[str, Span] = {}
    sources: dict[str, list[str]] = {}
    for report in reports:
        if not report.concerned:
            continue
        for header, span in report.missing:
            first.setdefault(header, span)
            sources.setdefault(header, []).append(report.source)
        if report.errors and not report.missing:
            message, span = report.errors[0]
            about = tuple(_QUOTED.findall(message))
            diagnostics.warning("vendor-source", f"clang says: {message}", span, about=about)
    for header, span in first.items():
        source, *others = dict.fromkeys(sources[header])
        where = source if not others else f"{source} and {len(others)} more"
        diagnostics.warning(
            "missing-header",
            f"'{header}' is not found, so only names and parameter counts are checked in {where}",
            span,
            "add its folder to 'include_dirs' in vendor.yaml",
        )
