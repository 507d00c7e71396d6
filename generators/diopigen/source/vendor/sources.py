"""Finds the functions that C++ sources define in a namespace and those inside it, by libclang: what compiles counts."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from diopigen.diagnostics import Diagnostics, Span
from diopigen.source.cpp.common_headers import all_headers, common_headers
from diopigen.source.cpp.source_cache import SourceCache

# CUDA's words mean nothing to a C++ parser, and nothing to a signature either.
_CUDA_WORDS = ("__global__", "__device__", "__host__", "__shared__", "__constant__", "__forceinline__")
# Each parses a file, which takes tens of megabytes.
_THREADS = min(8, os.cpu_count() or 1)
_PREFIX = "diopi"
_SUFFIXES = (".cpp", ".cc", ".cxx", ".c++", ".C", ".cu")
_SYSTEM_HEADERS = ("/usr/include", "/usr/local/include")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Which files are searched, how they are compiled, and for what."""

    namespace: str  # e.g. "impl::droplet"
    files: tuple[Path, ...]
    include_dirs: tuple[Path, ...]  # the contract's headers first
    defines: tuple[str, ...]  # e.g. ("DIOPI_LAUNCHER_HEADER=<launch/host.h>",)
    named: bool = True  # the vendor says that these files hold its functions
    compiled: bool = False  # they are of this project, whose build compiles each for every vendor
    established: tuple[Path, ...] = ()  # compatibility headers, which come before those of the contract
    foreign: tuple[str, ...] = ()  # e.g. ("ATen",): folders of headers whose lack is no news; no signature needs them


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function with a body."""

    symbol: str  # e.g. "diopiConvolution2d"
    namespace: str  # e.g. "impl::droplet::fast": the one searched, or one inside it
    called: str  # e.g. "impl::droplet::v2": with inline namespaces, or the one that `using` takes it from
    types: tuple[str, ...]  # e.g. ("diopiContext *", "long"): canonical, of all parameters
    spelled: tuple[str, ...]  # e.g. ("diopiContextHandle_t", "int64_t"): as the source has them
    returns: str  # e.g. "diopiError_t"
    c_linkage: bool  # defined as extern "C"
    inline: bool  # without code where nothing calls it
    source: str  # e.g. "vendors/droplet/functions/conv.cpp", the file that is compiled
    span: Span  # where its name stands; a macro's use if a macro defines it


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What one file has to show."""

    source: str  # e.g. "vendors/droplet/functions/conv.cpp"
    definitions: tuple[Definition, ...]
    missing: tuple[tuple[str, Span], ...]  # e.g. (("cublas_v2.h", span),): headers that are not there
    errors: tuple[tuple[str, Span], ...]  # other complaints of clang
    device: bool  # defines initLibrary() or another function that a library has once
    concerned: bool  # has definitions, or may have some that clang cannot see


class ClangMissing(Exception):
    """libclang is needed and cannot be loaded; the text says why."""


def _clang_functions() -> ModuleType:
    """The module that parses; loaded only where something has to be parsed. Raises ClangMissing."""
    try:
        from diopigen.source.cpp import clang, clang_functions

        clang.require_clang()
        clang.give_memory_back()
    except ImportError as error:
        raise ClangMissing(" ".join(str(error).split())) from error
    return clang_functions


def source_files(places: Sequence[Path]) -> tuple[Path, ...]:
    """Every C++ and CUDA source at the places, files or folders, at any depth, in alphabetical order."""
    found = {
        path
        for place in places
        for path in ([place] if place.is_file() else place.rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file()
    }
    return tuple(sorted(found))


def all_sources(folder: Path, generated: Path) -> tuple[Path, ...]:
    """The sources of a vendor that names none: every one below `folder` but tests and what was made there."""
    found = (path for path in source_files([folder]) if generated not in path.parents)
    return tuple(path for path in found if not any(map(_is_aside, path.relative_to(folder).parts[:-1])))


def _is_aside(folder: str) -> bool:
    return folder.startswith((".", "build")) or folder in ("test", "tests")


def search(
    query: Search, root: Path, cache: Path, stage: Callable[[], object], diagnostics: Diagnostics
) -> tuple[SourceReport, ...]:
    """A report on each file, in order. Files that changed since the last run are parsed, several at a time.

    `stage` is called before, and writes the headers that no report depends on. Raises ClangMissing if something has to
    be parsed and libclang cannot be loaded.
    """
    remembered = SourceCache(cache, _roots(query.include_dirs, root))
    if remembered.damaged:
        diagnostics.warning(
            "damaged-cache",
            "this cache is damaged and was rebuilt",
            Span(path=_shown(str(cache), root), line=1, column=1),
        )
    flags = _flags(query)
    reports = {path: remembered.found(str(path), flags) for path in query.files}
    stale = [path for path, report in reports.items() if report is None]
    if stale:
        stage()
    for path, (report, read) in zip(stale, _parsed(stale, query, flags), strict=True):
        if report["missing"] or not report["errors"]:  # an error may follow from a mistake in the schemas
            remembered.keep(str(path), flags, [*_decisive(read), *_awaited(path, query, report)], report)
        reports[path] = report
    remembered.write([str(path) for path in query.files])
    return tuple(_report(path, report or {}, root, query) for path, report in reports.items())


def _roots(include_dirs: Sequence[Path], root: Path) -> dict[str, Path]:
    """What lies elsewhere in another checkout: the contract's headers, which come first, and the checkout."""
    return {"${contract}": include_dirs[0], "${root}": root}


def _awaited(path: Path, query: Search, report: Mapping[str, Any]) -> Iterator[str]:
    """Where a header would be found that is missing today: once it is there, the file is to be parsed again."""
    folders = (path.parent, *query.include_dirs, *map(Path, _SYSTEM_HEADERS))
    for missing in report["missing"]:
        if not _is_foreign(missing["header"], query.foreign):
            yield from (str(folder / missing["header"]) for folder in folders)


def _is_foreign(header: str, foreign: tuple[str, ...]) -> bool:
    return header.partition("/")[0] in foreign


def _parsed(files: Sequence[Path], query: Search, flags: Sequence[str]) -> list[tuple[dict[str, Any], list[str]]]:
    """A report on each file and all that was read for it."""
    if not files:
        return []
    clang_functions = _clang_functions()
    worth = all_headers if query.compiled else common_headers
    common = worth(files, (*query.established, *query.include_dirs))
    groups = tuple(dict.fromkeys(headers for headers in common.values() if headers))
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=_THREADS) as pool:

        def precompiled(headers: tuple[str, ...]) -> Any:
            target = Path(folder) / f"{groups.index(headers)}.pch"
            return clang_functions.precompiled(headers, flags, target, query.namespace, _PREFIX)

        read = {(): clang_functions.Common(), **dict(zip(groups, pool.map(precompiled, groups), strict=True))}

        def report(path: Path) -> tuple[dict[str, Any], list[str]]:
            found: tuple[dict[str, Any], list[str]] = clang_functions.report(
                path, flags, read[common[path]], query.namespace, _PREFIX
            )
            return found

        return list(pool.map(report, files))


def canonical_types(
    spelled: Sequence[str], include_dirs: Sequence[Path], cache: Path, where: Path
) -> Mapping[str, str] | str:
    """The canonical type for each C type of the contract, e.g. {"int64_t": "long"}; clang's complaint if there is one.

    Any complaint here is ours: with a header that is not found clang goes on and reads bool as int.
    """
    remembered = SourceCache(cache, _roots(include_dirs, where))
    declaration = f"#include <diopi/diopirt.h>\nvoid contract({', '.join(spelled)});\n"
    flags = ["-x", "c++", "-std=c++17", *(f"-I{folder}" for folder in include_dirs)]
    report = remembered.found("contract", [*flags, declaration])
    if report is None:
        report, read = _clang_functions().types_of(where, flags, declaration)
        if report["errors"]:
            return str(report["errors"][0])
        remembered.keep("contract", [*flags, declaration], read, report)
        remembered.write(["contract"])
    return dict(zip(spelled, report["types"], strict=True))


def _flags(query: Search) -> list[str]:
    words = [f"-D{word}=" for word in _CUDA_WORDS]
    include = [f"-I{folder}" for folder in (*query.established, *query.include_dirs)]
    # What a missing header leaves unknown is complained of at every use: no number of complaints may end the parsing.
    fixed = ["-x", "c++", "-std=c++17", "-ferror-limit=0"]
    return [*fixed, *include, *(f"-D{define}" for define in query.defines), *words]


def _decisive(read: Sequence[str]) -> list[str]:
    """Declarations of operators change with every new op, and no definition in a namespace depends on them."""
    return [path for path in read if not _declares_operators(Path(path))]


def _declares_operators(path: Path) -> bool:
    return (path.parent.name == "diopi" and path.name.startswith("functions")) or path.name == "impl_functions.hpp"


def _shown(path: str, root: Path) -> str:
    try:
        return Path(path).relative_to(root).as_posix()
    except ValueError:
        return path


def _report(path: Path, report: Mapping[str, Any], root: Path, query: Search) -> SourceReport:
    source = _shown(str(path), root)
    missing = [found for found in report["missing"] if not _is_foreign(found["header"], query.foreign)]
    # What a foreign header would declare is an error at each use; so is what nvcc knows without a header.
    excused = len(missing) < len(report["missing"]) or path.suffix == ".cu"
    errors = [] if excused else report["errors"]

    def span(at: Mapping[str, Any], length: int = 1) -> Span:
        shown = _shown(at["path"], root) if at["path"] else source
        return Span(path=shown, line=at["line"], column=at["column"], length=length)

    return SourceReport(
        source=source,
        definitions=tuple(
            Definition(
                symbol=found["symbol"],
                namespace=found["namespace"],
                called=found["called"],
                types=tuple(found["types"]),
                spelled=tuple(found["spelled"]),
                returns=found["returns"],
                c_linkage=found["c_linkage"],
                inline=found["inline"],
                source=source,
                span=span(found, len(found["symbol"])),
            )
            for found in report["definitions"]
        ),
        missing=tuple((found["header"], span(found)) for found in missing),
        errors=tuple((found["message"], span(found)) for found in errors),
        device=report["device"],
        concerned=query.named or report["concerned"] or bool(report["definitions"]),
    )
