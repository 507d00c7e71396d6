"""What the ABI record says: sizes of types, values of enums, a hash for each header; in groups that a library uses."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diopigen.model.runtime import Runtime

# Structs and enums that cross the boundary; the device table tells its own size.
_STRUCTS = ("diopiSize_t", "diopiScalar_t", "diopiDeviceProperties_t")
_RUNTIME_HEADERS = ("diopirt", "diopi_register")


@dataclass(frozen=True, slots=True, kw_only=True)
class AbiGroup:
    """Entries that stand or fall together: what every library uses, or the functions of one header."""

    macro: str  # e.g. "DIOPI_ABI_FUNCTIONS"
    comment: str  # e.g. "A library with functions of functions.h."
    entries: tuple[str, ...]  # e.g. ('diopiAbiDeclarations, "functions.h", DIOPI_ABI_FUNCTIONS_HASH',)


def abi_groups(runtime: Runtime, headers: Sequence[str]) -> tuple[AbiGroup, ...]:
    """The groups of a record; `headers` are those of operators. e.g. ("functions", "functions_ext")"""
    enums = {e.name: abi_hash(f"{v.name} = {v.value}" for v in e.enumerators) for e in runtime.enums}
    common = (
        *(f'diopiAbiSize, "{name}", sizeof({name})' for name in (*_STRUCTS, *enums)),
        *(f'diopiAbiValues, "{name}", {hash_}' for name, hash_ in enums.items()),
        *(_declarations(name) for name in _RUNTIME_HEADERS),
    )
    return (
        AbiGroup(macro=abi_macro(None), comment="What every library uses.", entries=common),
        *(
            AbiGroup(
                macro=abi_macro(name), comment=f"A library with functions of {name}.h.", entries=(_declarations(name),)
            )
            for name in headers
        ),
    )


def abi_macro(header: str | None) -> str:
    """The macro with the entries for one header of operators, or for what every library uses."""
    return f"DIOPI_ABI_{'COMMON' if header is None else header.upper()}"


def hash_macro(header: str) -> str:
    """e.g. "DIOPI_ABI_FUNCTIONS_HASH"; of diopirt.h it is DIOPI_ABI_RT_HASH."""
    return f"DIOPI_ABI_{header.removeprefix('diopi').lstrip('_').upper()}_HASH"


def _declarations(header: str) -> str:
    return f'diopiAbiDeclarations, "{header}.h", {hash_macro(header)}'


def abi_hash(facts: Iterable[str]) -> str:
    """64 bits over declarations, white space folded, as a C literal; comments do not count."""
    digest = hashlib.sha256("\n".join(" ".join(fact.split()) for fact in facts).encode()).hexdigest()
    return f"0x{digest[:16]}ULL"
