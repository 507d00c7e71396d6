"""Text to model for one vendor: vendor.yaml, convert_config.yaml, and what its sources and its bases' define."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from diopigen.c_spelling import c_args
from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.program import Program
from diopigen.model.vendor import Base, Implementation, Origin, Rule, Vendor
from diopigen.passes.vendor.bases import PORTABLE, BaseFolder, Folder, read_bases, read_folder, report_broken
from diopigen.passes.vendor.check_signatures import Contract, Provider, implementations
from diopigen.project import Project
from diopigen.source.vendor.convert_config import read_convert_config
from diopigen.source.vendor.sources import (
    ClangMissing,
    Search,
    SourceReport,
    all_sources,
    canonical_types,
    search,
    source_files,
)
from diopigen.source.yaml.nodes import Leaf, Mapping, Sequence
from diopigen.text import suggestion
from diopigen.vocabulary.dtype import DType
from diopigen.vocabulary.layouts import LAST

Stage = Callable[[], object]  # writes the headers that declare operators


def bind_vendor(project: Project, name: str, program: Program, stage: Stage, diagnostics: Diagnostics) -> Vendor | None:
    """The vendor in vendors/<name>, or None after diagnostics; what can be read is read even so.

    `stage` is called before a source is parsed.
    """
    folder = read_folder(project, name, diagnostics)
    if folder is None:
        return None
    config = project.config(name)
    rules = read_convert_config(config, project.shown(config), program.functions, program.dtypes, diagnostics)
    bases = read_bases(project, folder, diagnostics)
    own = _search(project, folder, diagnostics)
    sources = _Sources(project, stage)
    found: list[Implementation] = []
    bound: list[Base] = []
    try:
        sources.contract = _contract(project, program, folder.node.span, diagnostics)
        found += sources.found(own, Origin.VENDOR, rules, diagnostics)
        folders = {base.folder.name: base for base in bases.folders}
        for base in bases.order:
            if base == PORTABLE:
                found += sources.found(_portable_search(project), Origin.PORTABLE, (), diagnostics)
            else:
                filled, more = _base(folders[base], program, sources, diagnostics)
                bound.append(filled)
                found += more
    except ClangMissing as error:
        diagnostics.error(
            "missing-libclang",
            f"the sources cannot be parsed: {error}",
            folder.node.span,
            "run 'pip install libclang' in the environment of diopigen",
        )
    return Vendor(
        name=name,
        doc=folder.surface.doc,
        base=bases.order,
        bases=tuple(bound),
        generate=folder.surface.generate,
        config=project.shown(config),
        rules=rules,
        without_patterns=_without_patterns(folder, program, diagnostics),
        implementations=tuple(found),
        sources=tuple(project.shown(file) for file in sources.searched),
        span=folder.node.span,
        channels_innermost=tuple(_channels_innermost(folder, program, diagnostics)),
        separate_elements=tuple(folder.surface.separate_elements),
    )


def _channels_innermost(
    folder: Folder, program: Program, diagnostics: Diagnostics
) -> Iterator[tuple[str, tuple[DType, ...]]]:
    ops = {op.name: op for op in program.ops}
    value = folder.node.get("channels_innermost") if isinstance(folder.node, Mapping) else None
    for entry in value.entries if isinstance(value, Mapping) else ():
        name, span = entry.key.text, entry.key.span
        if name not in ops:
            diagnostics.error("unknown-op", f"there is no op '{name}'", span, suggestion(name, ops))
        elif not set(ops[name].layouts) & set(LAST):
            hint = f"its layouts are {', '.join(ops[name].layouts) or 'not said'}"
            diagnostics.error("no-inner-channels", f"'{name}' has no layout with channels innermost", span, hint)
        words = entry.value.items if isinstance(entry.value, Sequence) else ()
        yield name, tuple(_dtypes([word for word in words if isinstance(word, Leaf)], program, diagnostics))


def _dtypes(words: list[Leaf], program: Program, diagnostics: Diagnostics) -> Iterator[DType]:
    for word in words:
        dtype = program.dtypes.worded(word.text)
        if dtype is not None:
            yield dtype
            continue
        known = [dtype.word for dtype in program.dtypes.types]
        hint = suggestion(word.text, known) or f"the dtypes are {', '.join(known)}"
        diagnostics.error("unknown-dtype", f"there is no dtype '{word.text}'", word.span, hint)


def _without_patterns(folder: Folder, program: Program, diagnostics: Diagnostics) -> tuple[str, ...]:
    known = [pattern.name for pattern in program.patterns]
    for position, name in enumerate(folder.surface.without_patterns):
        if name not in known:
            span = folder.at("without_patterns", position)
            diagnostics.error("unknown-pattern", f"there is no pattern '{name}'", span, suggestion(name, known))
    return tuple(folder.surface.without_patterns)


class _Sources:
    """Searches sources and holds what they define against the contract; remembers which files were searched."""

    def __init__(self, project: Project, stage: Stage) -> None:
        self.project = project
        self.stage = stage
        self.contract: Contract | None = None  # without one nothing is searched
        self.searched: list[Path] = []

    def reports(self, query: Search, diagnostics: Diagnostics) -> tuple[SourceReport, ...]:
        self.searched += query.files
        if self.contract is None:
            return ()
        cache = self.project.cache / f"sources-{query.namespace.replace('::', '-')}.json"
        return search(query, self.project.root, cache, self.stage, diagnostics)

    def found(
        self, query: Search, origin: Origin, rules: tuple[Rule, ...], diagnostics: Diagnostics
    ) -> Iterator[Implementation]:
        return self.fitting(self.reports(query, diagnostics), query, origin, rules, diagnostics)

    def fitting(
        self,
        reports: tuple[SourceReport, ...],
        query: Search,
        origin: Origin,
        rules: tuple[Rule, ...],
        diagnostics: Diagnostics,
    ) -> Iterator[Implementation]:
        if self.contract is not None:
            provider = Provider(namespace=query.namespace, origin=origin, named=frozenset(_named(rules)))
            yield from implementations(reports, provider, self.contract, diagnostics)


def _named(rules: tuple[Rule, ...]) -> Iterator[tuple[str, str]]:
    for rule in rules:
        if rule.implementation is not None:
            yield from ((symbol, rule.implementation[0]) for symbol, _ in rule.functions)


def _base(
    base: BaseFolder, program: Program, sources: _Sources, diagnostics: Diagnostics
) -> tuple[Base, tuple[Implementation, ...]]:
    """A base and what it implements. What is wrong in it is its own business, and told in one line."""
    mistakes = Diagnostics()
    project, folder = sources.project, base.folder
    config = folder.path / "convert_config.yaml"
    rules = read_convert_config(config, project.shown(config), program.functions, program.dtypes, mistakes)
    query = _search(project, folder, mistakes)
    reports = tuple(report for report in sources.reports(query, mistakes) if not report.device)
    found = tuple(sources.fitting(reports, query, Origin.BASE, rules, mistakes))
    report_broken(folder.name, base.span, mistakes, diagnostics)
    filled = Base(
        name=folder.name,
        base=base.order,
        rules=rules,
        sources=tuple(report.source for report in reports),
        include_dirs=tuple(map(project.shown, _include_dirs(folder))),
        defines=tuple(folder.surface.defines),
    )
    return filled, found


def _search(project: Project, folder: Folder, diagnostics: Diagnostics) -> Search:
    """The vendor's sources: those that vendor.yaml names, or all of its folder."""
    named = folder.surface.sources
    places = []
    for position, source in enumerate(named or ()):
        if os.path.exists(folder.path / source):  # which takes a name of any length
            places.append(folder.path / source)
        else:
            shown = project.shown(folder.path / source)
            diagnostics.error("missing-folder", f"there is no {shown}", folder.at("sources", position))
    return Search(
        namespace=f"impl::{folder.name}",
        files=all_sources(folder.path, project.generated) if named is None else source_files(places),
        include_dirs=(*_shared_headers(project), *_include_dirs(folder), project.declarations(folder.name)),
        defines=tuple(folder.surface.defines),
        named=named is not None,
        compiled=(folder.path / "CMakeLists.txt").is_file(),
        established=(project.runtime / "established",),
        foreign=tuple(folder.surface.foreign),
    )


def _include_dirs(folder: Folder) -> tuple[Path, ...]:
    return (folder.path, *((folder.path / include).resolve() for include in folder.surface.include_dirs))


def _portable_search(project: Project) -> Search:
    """The kernels that serve every vendor; for finding them the plain launcher is as good as the vendor's."""
    kernels = project.runtime / "kernels"
    return Search(
        namespace="impl::portable",
        files=source_files([kernels]),
        include_dirs=_shared_headers(project),
        defines=('DIOPI_LAUNCHER_HEADER="launch/host.h"',),
        compiled=True,
    )


def _shared_headers(project: Project) -> tuple[Path, ...]:
    """The contract's headers, which come first, and those of the run time."""
    return (project.headers, project.runtime, project.runtime / "kernels")


def _contract(project: Project, program: Program, span: Span, diagnostics: Diagnostics) -> Contract | None:
    """The canonical parameter types of every function; they come from the contract's own header."""
    signatures = {f.symbol: tuple((arg.type, arg.name) for arg in c_args(f)) for f in program.functions}
    spelled = tuple(dict.fromkeys(type_ for params in signatures.values() for type_, _ in params))
    include = project.headers
    if not (include / "diopi" / "diopirt.h").is_file():
        diagnostics.error(
            "missing-contract",
            f"{project.shown(include)}/diopi/diopirt.h does not exist, so signatures cannot be compared",
            span,
            "run 'diopigen header'",
        )
        return None
    types = canonical_types(spelled, (include,), project.cache / "contract-types.json", project.root)
    if isinstance(types, str):
        diagnostics.error("broken-contract", f"clang cannot read the contract: {types}", span, "run 'diopigen header'")
        return None
    others = frozenset(function.name for function in program.runtime.functions)
    return Contract(functions=program.functions, signatures=signatures, canonical=types, others=others)
