"""The passes in order; the first file to read. What is written of their results is in `emit/outputs.py`."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, cached_property, partial
from pathlib import Path

from diopigen.aten.catalog import Catalog, TorchMissing, loading, scalar_types
from diopigen.aten.releases import Releases
from diopigen.diagnostics import Diagnostics
from diopigen.emit.staged import runtime_text, staged_headers, staged_types, types_text
from diopigen.kept import KeptTexts, kept_texts
from diopigen.model.arities import WrittenFunctions, WrittenHeader
from diopigen.model.program import Program
from diopigen.passes.aten.bind import bind_aten
from diopigen.passes.aten.call import call_aten
from diopigen.passes.aten.check_torch_dtypes import check_torch_dtypes
from diopigen.passes.aten.drift import Drift
from diopigen.passes.aten.leave_out import leave_out
from diopigen.passes.cases.plan import plan_cases
from diopigen.passes.composition.derive import check_compositions
from diopigen.passes.contract.bind_ops import bind_ops
from diopigen.passes.contract.bind_runtime import bind_dtypes, bind_runtime
from diopigen.passes.contract.check_needed_names import check_needed_names
from diopigen.passes.contract.expand import expand
from diopigen.passes.contract.verify import verify
from diopigen.passes.patterns.bind import bind_patterns
from diopigen.passes.patterns.check import check_names, check_operators
from diopigen.passes.vendor.bind import bind_vendor
from diopigen.passes.vendor.bind_own_ops import bind_own_ops, schema_folders
from diopigen.passes.vendor.plan import plan_vendor
from diopigen.passes.vendor.torch_operators import torch_operators
from diopigen.project import Project
from diopigen.source.cpp.declared import check_declarations
from diopigen.source.cpp.rules import arities
from diopigen.source.cpp.written_files import written_files
from diopigen.targets.aten.view import unservable
from diopigen.targets.conformance import case_lines
from diopigen.targets.output import renderer

# The headers of the functions that schemas may call, by namespace.
WRITTEN = {
    "shape": "runtime_cpp/torch/shapes/shapes.h",
    "checks": "runtime_cpp/torch/wrapper/checks.h",
    "derive": "runtime_cpp/torch/shapes/derive.h",
}


class Stage(Enum):
    """What a run is asked for beyond the contract; a run keeps the order of the members."""

    ENTRIES = 0  # what each entry says, as C takes it; always run
    CONTRACT = 1  # what the entries say together, and beside other files; always run
    ATEN = 2  # the bindings to the installed torch's operators
    VENDOR = 3  # what one vendor has and lacks, and the plan of each of its functions
    CASES = 4  # the conformance cases


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a pass reads beside the program."""

    project: Project
    diagnostics: Diagnostics
    vendor: str | None = None
    keep: bool = False  # results, for the next run
    entries: Path | None = None  # a folder that is read alone, in place of schemas/ops

    @cached_property
    def loading(self) -> Callable[[], Catalog]:
        """Gives the installed torch's operators, which are read meanwhile. Raises TorchMissing where there is none."""
        return loading(self.project.cache, self.diagnostics)

    @cached_property
    def catalog(self) -> Catalog:
        return self.loading()

    @cached_property
    def drift(self) -> Drift:
        """What tells the operators that drifted, by the catalog's release and the records in schemas/aten."""
        releases = Releases(folder=self.project.schemas / "aten")
        return Drift(release=self.catalog.release, releases=releases, diagnostics=self.diagnostics)


Pass = Callable[[Program, Context], Program]


def run(
    project: Project,
    diagnostics: Diagnostics,
    *stages: Stage,
    vendor: str | None = None,
    program: Program | None = None,
    keep: bool = False,
    entries: Path | None = None,
    without_torch: Callable[[TorchMissing], None] | None = None,
) -> Program | None:
    """What follows from the schemas, with what `stages` add; None if the files that all rests on have errors.

    A run goes on from `program` where there is one; one that is to `keep` results gives cases as lines of the plan. A
    folder of `entries` is read alone, in place of schemas/ops. Where there is no torch, `without_torch` is told, and
    ATEN is left out; raises TorchMissing if there is nobody to tell.
    """
    context = Context(project=project, diagnostics=diagnostics, vendor=vendor, keep=keep, entries=entries)
    wanted = {*stages} - ({Stage.VENDOR} if vendor is None else set())
    if program is not None and vendor is not None and any(schema_folders(project, vendor)):
        wanted |= {Stage.ATEN} if program.bindings else set()
        program = None  # whose operators of its own come first
    if program is None:
        program = _ground(context)
        wanted |= {Stage.ENTRIES} if entries is not None else {Stage.ENTRIES, Stage.CONTRACT}
    if program is None:
        return None
    if Stage.ATEN in wanted:
        try:
            _ = context.loading
        except TorchMissing as missing:
            if without_torch is None:
                raise
            without_torch(missing)
            wanted.remove(Stage.ATEN)
    return _through(program, wanted, context)


def _through(program: Program, stages: Collection[Stage], context: Context) -> Program:
    for stage, passes in PASSES.items():
        for each in passes if stage in stages else ():
            program = each(program, context)
    return program


def _ground(context: Context) -> Program | None:
    """The two files that every entry rests on."""
    project, diagnostics = context.project, context.diagnostics
    runtime_path = project.schemas / "runtime.yaml"
    dtypes = bind_dtypes(project, diagnostics)
    if dtypes is None:
        return None
    runtime = bind_runtime(runtime_path, project.shown(runtime_path), dtypes, diagnostics)
    return None if runtime is None else Program(dtypes=dtypes, runtime=runtime)


def _ops(program: Program, context: Context) -> Program:
    folder, root = context.project.schemas / "ops", context.project.home
    if context.entries is not None:
        folder = root = context.entries
    with _kept_by(context, "ops") as kept:
        ops = bind_ops(
            folder, lambda path: path.relative_to(root).as_posix(), program.dtypes, context.diagnostics, kept
        )
        program = replace(program, ops=ops)
        if context.vendor is None or context.entries is not None:
            return program
        return bind_own_ops(program, context.project, context.vendor, context.diagnostics, kept)


def _functions(program: Program, context: Context) -> Program:
    return expand(program, context.diagnostics)


def _verified(program: Program, context: Context) -> Program:
    with _kept_by(context, "verified") as kept:
        return verify(program, _written_functions(context.project), context.diagnostics, kept)


def _written_functions(project: Project) -> WrittenFunctions:
    return {
        name: WrittenHeader(path, arities(project.home / path, f"dipu::{name}", project.cache / f"{name}.json"))
        for name, path in WRITTEN.items()
    }


def _composed(program: Program, context: Context) -> Program:
    with _kept_by(context, "compositions") as kept:
        check_compositions(program, context.diagnostics, kept)
    return program


def _declarable(program: Program, context: Context) -> Program:
    """Asks clang whether C and C++ take what the headers declare; of entries that are read alone it is asked always."""
    if context.entries is not None or not context.diagnostics.failed:
        opening = types_text(program, renderer(context.project.templates))
        check_declarations(program, opening, context.project.cache, context.diagnostics)
    return program


def _needed(program: Program, context: Context) -> Program:
    if not context.diagnostics.failed:
        text = runtime_text(program, renderer(context.project.templates))
        check_needed_names(text, context.project, context.diagnostics)
    return program


def _patterns(program: Program, context: Context) -> Program:
    path = context.project.schemas / "patterns.yaml"
    with _kept_by(context, "patterns") as kept:
        patterns = bind_patterns(path, context.project.shown(path), program.dtypes, context.diagnostics, kept)
    return replace(program, patterns=check_names(patterns, program, context.diagnostics))


def _torch_dtypes(program: Program, context: Context) -> Program:
    check_torch_dtypes(program.dtypes, scalar_types(), context.project, context.diagnostics)
    return program


def _bindings(program: Program, context: Context) -> Program:
    return bind_aten(program, context.catalog, context.drift)


def _servable(program: Program, context: Context) -> Program:
    """Leaves out the bindings that no wrapper can be written for."""
    drift, lost = context.drift, dict(unservable(program))
    served = {binding.span for binding in program.bindings if binding not in lost}
    for binding, reason in lost.items():
        # Of a packet, whose overloads share its place, the forms beside the plain one need not all be served.
        if binding.span not in served or "." not in binding.overload.name:
            if drift.changed(binding.overload, binding.op, binding.span, lambda overload: True):
                continue
            context.diagnostics.error(
                "aten-unservable", reason, binding.span, "give the output a shape that the operator tells"
            )
    return replace(program, bindings=tuple(b for b in program.bindings if b not in lost))


def _compiling(program: Program, context: Context) -> Program:
    written = written_files(context.project.runtime / "torch", "runtime_cpp/torch")
    return leave_out(program, written, context.catalog, context.drift)


def _pattern_operators(program: Program, context: Context) -> Program:
    return replace(program, patterns=check_operators(program.patterns, context.catalog, context.drift))


def _vendor(program: Program, context: Context) -> Program:
    """Reads the vendor's sources against the headers that follow from this program, not those of an earlier run."""
    assert context.vendor is not None
    project = context.project
    stage = cache(partial(staged_headers, program, project, project.vendor_names()))
    staged = replace(project, staged_headers=staged_types(program, project))
    return replace(program, vendor=bind_vendor(staged, context.vendor, program, stage, context.diagnostics))


def _calls(program: Program, context: Context) -> Program:
    """The operators of the installed torch behind each function of a vendor that calls it; without torch none."""
    vendor = program.vendor
    if vendor is None or vendor.generate != "aten":
        return program
    try:
        bound = program if program.bindings else _through(program, {Stage.ATEN}, context)
        return call_aten(bound, context.catalog)
    except TorchMissing as missing:
        message = f"'{vendor.name}' has only the functions of its own: {missing}"
        context.diagnostics.error("missing-torch", message, vendor.span, "run 'pip install torch'")
        return program


def _plans(program: Program, context: Context) -> Program:
    return torch_operators(plan_vendor(program, context.diagnostics), context.diagnostics)


def _cases(program: Program, context: Context) -> Program:
    """The cases; of a run that keeps results their lines in the plan, and only what changed is planned."""
    with _kept_by(context, "cases") as kept:
        if kept is None:
            return plan_cases(program, context.diagnostics)
        ground = KeptTexts.key(program.dtypes)
        digests = {op.name: op.digest for op in program.ops}
        keys = {f.symbol: KeptTexts.key(ground, digests[f.op], f.symbol) for f in program.functions}
        known = {symbol: text for symbol, key in keys.items() if (text := kept.found(key)) is not None}
        made = case_lines(plan_cases(program, context.diagnostics, known).cases)
        if not context.diagnostics.failed:
            for symbol in keys.keys() - known.keys():
                kept.keep(keys[symbol], made.get(symbol, ""))
    return replace(program, case_lines={symbol: known.get(symbol) or made.get(symbol, "") for symbol in keys})


def _kept_by(context: Context, what: str) -> AbstractContextManager[KeptTexts | None]:
    """What earlier runs kept, to which this one adds; None for a run that is to keep nothing."""
    path = context.project.cache / f"{what}.kept"
    return kept_texts(path, context.project.shown(path), context.diagnostics) if context.keep else nullcontext()


PASSES: dict[Stage, tuple[Pass, ...]] = {
    Stage.ENTRIES: (_ops, _functions, _verified, _composed, _declarable),
    Stage.CONTRACT: (_needed, _patterns),
    Stage.ATEN: (_torch_dtypes, _bindings, _servable, _compiling, _pattern_operators),
    Stage.VENDOR: (_vendor, _calls, _plans),
    Stage.CASES: (_cases,),
}


def stages(wrappers: bool, targets: Collection[str]) -> tuple[Stage, ...]:
    """What the outputs of `targets`, and with `wrappers` those of PyTorch's operators, follow from."""
    aten = (Stage.ATEN,) if wrappers or {"compiler", "conformance"} & {*targets} else ()
    return (*aten, Stage.VENDOR, *((Stage.CASES,) if "conformance" in targets else ()))
