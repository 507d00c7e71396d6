"""The passes in order, and the targets that write what comes out; the first file to read."""

import hashlib
import importlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from diopigen.aten.catalog import Catalog, TorchMissing, load
from diopigen.aten.releases import Releases
from diopigen.atomic import write_text
from diopigen.c_spelling import c_args
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.model.vendor import Vendor
from diopigen.passes.aten.bind import bind_aten
from diopigen.passes.aten.call import call_aten
from diopigen.passes.aten.drift import Drift
from diopigen.passes.aten.leave_out import leave_out
from diopigen.passes.cases.plan import plan_cases
from diopigen.passes.composition.derive import check_compositions
from diopigen.passes.contract.bind import bind_ops
from diopigen.passes.contract.bind_runtime import bind_dtypes, bind_runtime
from diopigen.passes.contract.check_dtype_words import check_dtype_words
from diopigen.passes.contract.expand import expand
from diopigen.passes.contract.verify import verify
from diopigen.passes.patterns.bind import bind_patterns
from diopigen.passes.patterns.check import check_names, check_operators
from diopigen.passes.vendor.bind import bind_vendor
from diopigen.passes.vendor.plan import plan_vendor
from diopigen.project import Project
from diopigen.source.cpp.declared import check_declarations
from diopigen.source.cpp.rules import arities
from diopigen.source.cpp.written_files import written_files
from diopigen.source.schema.surface import OpFile
from diopigen.targets import adaptor, aten, header
from diopigen.targets.aten.view import unservable
from diopigen.targets.editor import editor_schema
from diopigen.targets.output import Output, Render, renderer
from diopigen.targets.sources import sources, wrapper_sources
from diopigen.vocabulary.codec import vocabulary_text

CONTRACT_OWNED = ("include/", "op.schema.json", "vocabulary.json")
WRAPPERS_OWNED = ("aten/", "sources.cmake")

# The targets that write for one vendor, in order, with the path prefixes that each is in charge of. A target is the
# package of that name in targets/, loaded when it is asked for.
VENDOR_TARGETS: dict[str, tuple[str, ...]] = {
    "adaptor": ("adaptor/", "declarations/"),
    "kernels": ("kernels/",),
    "calls": ("calls/",),
    "composites": ("composites/",),
    "compiler": ("compiler/",),
    "conformance": ("conformance/",),
}


def contract(project: Project, diagnostics: Diagnostics) -> Program | None:
    """What the schemas say, without a vendor and without torch; None if the ground files have errors."""
    dtypes_path, runtime_path = project.schemas / "dtypes.yaml", project.schemas / "runtime.yaml"
    dtypes = bind_dtypes(dtypes_path, project.shown(dtypes_path), diagnostics)
    if dtypes is None:
        return None
    runtime = bind_runtime(runtime_path, project.shown(runtime_path), dtypes, diagnostics)
    if runtime is None:
        return None
    ops = bind_ops(project.schemas / "ops", project.root, dtypes, diagnostics)
    program = Program(dtypes=dtypes, runtime=runtime, ops=ops)
    shapes = arities(project.runtime / "torch" / "shapes" / "shapes.h", "dipu::shape", project.cache / "shapes.json")
    verified = verify(expand(program, diagnostics), shapes, diagnostics)
    check_compositions(verified, diagnostics)
    if not diagnostics.failed:
        check_headers(verified, project, diagnostics)
    if not diagnostics.failed:
        check_dtype_words(runtime, project.runtime, "runtime_cpp", diagnostics)
    patterns_path = project.schemas / "patterns.yaml"
    patterns = bind_patterns(patterns_path, project.shown(patterns_path), dtypes, diagnostics)
    return replace(verified, patterns=check_names(patterns, verified, diagnostics))


def check_headers(program: Program, project: Project, diagnostics: Diagnostics) -> None:
    """Asks clang whether C and C++ take what the headers declare."""
    check_declarations(program, _types(program, project), project.cache, diagnostics)


def _types(program: Program, project: Project) -> str:
    """What stands in the headers before functions: enums, structs and types."""
    bare = replace(program.runtime, functions=(), function_types=(), device_entries=())
    texts = header.outputs(replace(program, runtime=bare, functions=()), renderer(project.templates))
    lines = (line for output in texts for line in output.text.splitlines())
    return "\n".join(line for line in lines if not line.startswith("#include <diopi/"))


def with_aten(program: Program, project: Project, diagnostics: Diagnostics) -> tuple[Program, Catalog]:
    """Adds the bindings to the installed torch's operators. Raises TorchMissing where there is none."""
    catalog = load(project.cache, diagnostics)
    drift = drift_of(catalog, project, diagnostics)
    bound = bind_aten(program, catalog, drift)
    lost = dict(unservable(bound))
    served = {binding.span for binding in bound.bindings if binding not in lost}
    for binding, reason in lost.items():
        # Of a packet, whose overloads share its place, the forms beside the plain one need not all be served.
        if binding.span not in served or "." not in binding.overload.name:
            if drift.changed(binding.overload, binding.op, binding.span, lambda overload: True):
                continue
            diagnostics.error(
                "aten-unservable", reason, binding.span, "give the output a shape that the operator tells"
            )
    kept = replace(bound, bindings=tuple(b for b in bound.bindings if b not in lost))
    written = written_files(project.runtime / "torch", "runtime_cpp/torch")
    left = leave_out(kept, written, catalog, drift)
    return replace(left, patterns=check_operators(left.patterns, catalog, diagnostics)), catalog


def drift_of(catalog: Catalog, project: Project, diagnostics: Diagnostics) -> Drift:
    """What tells the operators that drifted: the catalog's release beside those that schemas/aten has records of."""
    releases = Releases(folder=project.schemas / "aten")
    return Drift(release=catalog.release, releases=releases, diagnostics=diagnostics)


def with_vendor(program: Program, project: Project, vendor: str, diagnostics: Diagnostics) -> Program:
    """Adds what one vendor has and lacks, and the plan of each of its functions.

    The vendor's sources are read against the headers that follow from this program, not those of an earlier run.
    """
    project = replace(project, staged_headers=staged_headers(program, project, project.vendor_names()))
    signatures = {f.symbol: tuple((arg.type, arg.name) for arg in c_args(f)) for f in program.functions}
    bound = bind_vendor(project, vendor, program, signatures, diagnostics)
    if bound is None:
        return program
    if bound.generate == "aten":
        program = _with_calls(program, bound, project, diagnostics)
    return plan_vendor(replace(program, vendor=bound), diagnostics)


def _with_calls(program: Program, vendor: Vendor, project: Project, diagnostics: Diagnostics) -> Program:
    """Adds the operators of the installed torch behind each function; without torch there are none."""
    try:
        bound = program if program.bindings else with_aten(program, project, diagnostics)[0]
        return call_aten(bound, load(project.cache, diagnostics))
    except TorchMissing as missing:
        message = f"'{vendor.name}' has only the functions of its own: {missing}"
        diagnostics.error("missing-torch", message, vendor.span, "run 'pip install torch'")
        return program


def staged_headers(program: Program, project: Project, vendors: Iterable[str] = ()) -> Path:
    """The include folder, in the cache, of the headers that follow from `program`.

    What the sources of `vendors` define is not known yet, so their declarations are those of all functions. A cache
    may serve several checkouts at once, so each has a folder of its own.
    """
    folder = project.cache / "contract" / hashlib.sha256(str(project.root).encode()).hexdigest()[:8]
    render = renderer(project.templates)
    declared = (adaptor.declarations(vendor, program.functions, render) for vendor in vendors)
    beside = (replace(output, path=f"include/{output.path}") for output in declared)
    for output in (*header.outputs(program, render), *beside):
        path = folder / output.path
        if not path.is_file() or path.read_text(encoding="utf-8") != output.text:
            write_text(path, output.text)
    return folder / "include"


def with_cases(program: Program, diagnostics: Diagnostics) -> Program:
    """Adds the conformance cases."""
    return plan_cases(program, diagnostics)


def contract_outputs(program: Program, render: Render) -> list[Output]:
    """The headers, the editors' schema and the vocabulary: what is checked in."""
    vocabulary = Output(path="vocabulary.json", text=vocabulary_text(program.dtypes))
    return [*header.outputs(program, render), editor_schema(OpFile.model_json_schema()), vocabulary]


def wrapper_outputs(program: Program, render: Render) -> list[Output]:
    """The wrappers of the installed torch's operators, with the list of what is compiled."""
    outputs = list(aten.outputs(program, render))
    return [*outputs, wrapper_sources(program, outputs, render)]


def vendor_outputs(program: Program, render: Render, targets: tuple[str, ...]) -> list[Output]:
    """The files of one vendor for the named targets; the list of sources only where all targets ran."""
    modules = (importlib.import_module(f"diopigen.targets.{name}") for name in targets)
    outputs = [output for module in modules for output in module.outputs(program, render)]
    return [*outputs, sources(program, outputs, render)] if _is_complete(targets) else outputs


def vendor_owned(targets: tuple[str, ...]) -> tuple[str, ...]:
    """The path prefixes that the named targets are in charge of."""
    owned = tuple(prefix for name in targets for prefix in VENDOR_TARGETS[name])
    return (*owned, "sources.cmake") if _is_complete(targets) else owned


def _is_complete(targets: tuple[str, ...]) -> bool:
    return set(targets) == set(VENDOR_TARGETS)
