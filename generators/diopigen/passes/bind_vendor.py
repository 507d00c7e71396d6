"""Text to model for one vendor: vendor.yaml, convert_config.yaml, and what its sources and its base's define."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin, Vendor
from diopigen.passes.check_signatures import Contract, implementations
from diopigen.project import Project
from diopigen.source.convert_config import read_convert_config
from diopigen.source.validate import fits
from diopigen.source.vendor_sources import ClangMissing, Search, canonical_types, search, source_files
from diopigen.source.vendor_surface import VendorSurface
from diopigen.source.yaml_nodes import Leaf, Node, Sequence, plain, read_yaml
from diopigen.source.yaml_nodes import Mapping as YamlMapping
from diopigen.text import suggestion

PORTABLE = "portable"

Signatures = Mapping[str, tuple[tuple[str, str], ...]]  # ex) {"diopiRelu": (("diopiContextHandle_t", "ctx"), ...)}


def bind_vendor(
    project: Project, name: str, program: Program, signatures: Signatures, diagnostics: Diagnostics
) -> Vendor | None:
    """The vendor in vendors/<name>, or None after diagnostics; what can be read is read even so.

    `signatures` are the C parameters, type and name, of every function of the contract.
    """
    path = project.vendors / name / "vendor.yaml"
    shown = project.shown(path)
    node = read_yaml(path, shown, diagnostics)
    if node is None or not fits(node, VendorSurface, "vendor.yaml", diagnostics):
        return None
    surface = VendorSurface.model_validate(plain(node))
    config = project.config(name)
    rules = read_convert_config(config, project.shown(config), program.functions, program.dtypes, diagnostics)
    if surface.base not in (None, PORTABLE):
        hint = suggestion(str(surface.base), (PORTABLE,)) or f"the base is {PORTABLE}"
        diagnostics.error("unknown-base", f"there is no base '{surface.base}'", _at(node, "base"), hint)
    own = _own_search(project, name, surface, node, diagnostics)
    searches = [(own, Origin.VENDOR)]
    if surface.base == PORTABLE:
        searches.append((_portable_search(project), Origin.PORTABLE))
    found: tuple[Implementation, ...] = ()
    try:
        contract = _contract(project, program, signatures, node.span, diagnostics)
        if contract is not None:
            found = tuple(_found(project, searches, contract, diagnostics))
    except ClangMissing as error:
        diagnostics.error(
            "missing-libclang",
            f"the sources cannot be parsed: {error}",
            node.span,
            "run 'pip install libclang' in the environment of diopigen",
        )
    return Vendor(
        name=name,
        doc=surface.doc,
        base=surface.base,
        generate=surface.generate,
        config=project.shown(config),
        rules=rules,
        implementations=found,
        sources=tuple(project.shown(file) for query, _ in searches for file in query.files),
        span=node.span,
    )


def _own_search(project: Project, name: str, surface: VendorSurface, node: Node, diagnostics: Diagnostics) -> Search:
    folder = project.vendors / name
    places = []
    for position, source in enumerate(surface.sources):
        if (folder / source).exists():
            places.append(folder / source)
        elif isinstance(node, YamlMapping) and node.get("sources") is not None:
            shown = project.shown(folder / source)
            diagnostics.error("missing-folder", f"there is no {shown}", _at(node, "sources", position))
    return Search(
        namespace=f"impl::{name}",
        files=source_files(places),
        include_dirs=(
            *_shared_headers(project),
            folder,
            *((folder / include).resolve() for include in surface.include_dirs),
        ),
        defines=tuple(surface.defines),
        foreign=tuple(surface.foreign),
    )


def _portable_search(project: Project) -> Search:
    """The kernels that serve every vendor; for finding them the plain launcher is as good as the vendor's."""
    kernels = project.runtime / "kernels"
    return Search(
        namespace="impl::portable",
        files=tuple(path for path in source_files([kernels]) if path.parent == kernels),
        include_dirs=_shared_headers(project),
        defines=('DIOPI_LAUNCHER_HEADER="launch/host.h"',),
    )


def _shared_headers(project: Project) -> tuple[Path, ...]:
    return (project.headers, project.runtime, project.runtime / "kernels")


def _contract(
    project: Project, program: Program, signatures: Signatures, span: Span, diagnostics: Diagnostics
) -> Contract | None:
    """The canonical parameter types of every function; they come from the contract's own header."""
    spelled = tuple(dict.fromkeys(type_ for params in signatures.values() for type_, _ in params))
    include = project.headers
    if not (include / "diopi" / "diopirt.h").is_file():
        diagnostics.error(
            "missing-contract",
            f"{project.shown(include)}/diopi/diopirt.h is not there, so no signature can be compared",
            span,
            "run 'diopigen header'",
        )
        return None
    types = canonical_types(spelled, (include,), project.cache / "contract-types.json", project.root)
    if isinstance(types, str):
        diagnostics.error("broken-contract", f"clang cannot read the contract: {types}", span, "run 'diopigen header'")
        return None
    return Contract(functions=program.functions, signatures=signatures, canonical=types)


def _found(
    project: Project, searches: list[tuple[Search, Origin]], contract: Contract, diagnostics: Diagnostics
) -> Iterator[Implementation]:
    for query, origin in searches:
        cache = project.cache / f"sources-{query.namespace.replace('::', '-')}.json"
        reports = search(query, project.root, cache, diagnostics)
        yield from implementations(reports, query.namespace, origin, contract, diagnostics)


def _at(node: Node, key: str, position: int | None = None) -> Span:
    value = node.get(key) if isinstance(node, YamlMapping) else None
    if isinstance(value, Sequence) and position is not None and position < len(value.items):
        value = value.items[position]
    return value.span if isinstance(value, Leaf | Sequence) else node.span
