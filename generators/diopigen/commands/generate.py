"""Runs targets and writes, checks or shows what they give."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from diopigen.commands.report import print_findings
from diopigen.diagnostics import Diagnostics
from diopigen.emit.depfile import write_depfile
from diopigen.emit.fresh import fingerprint, input_files, is_fresh, record_fresh, request_words
from diopigen.emit.place import Place, contract_place, vendor_place
from diopigen.project import Project

if TYPE_CHECKING:
    from diopigen.emit.writer import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one call of the command line asks for."""

    contract: bool  # the headers and the editors' schema
    targets: tuple[str, ...]  # ex) ("adaptor", "aten")
    vendor: str | None
    check: bool = False
    diff: bool = False
    out: Path | None = None
    force: bool = False
    error_format: str = "human"


def generate(project: Project, request: Request) -> int:
    """Writes the outputs that `request` names; the exit code: 0 clean, 1 findings or, with check, differences."""
    places = _places(project, request)
    inputs = input_files(project.root, request.vendor, project.convert_config)
    config = None if project.convert_config is None else project.shown(project.convert_config)
    words = request_words(request.contract, request.targets, request.vendor, config)
    print_ = fingerprint(project.root, inputs, words)
    records = _records(project, request, places)
    if is_fresh(records, print_, [(place.root, place.manifest) for place in places]):
        _finish(request, places, inputs)
        return 0
    return _run(project, request, places, inputs, print_)


def _places(project: Project, request: Request) -> list[Place]:
    out = None if request.out is None else request.out.absolute()
    places = [contract_place(project.root, out)] if request.contract else []
    if request.vendor is not None:
        places.append(vendor_place(project.root, out, request.vendor))
    return places


def _records(project: Project, request: Request, places: list[Place]) -> Path:
    """Where the fingerprint of the last run is kept: beside the vendor's files, never among checked-in ones."""
    return places[-1].root if request.vendor is not None else project.cache


def _run(project: Project, request: Request, places: list[Place], inputs: tuple[Path, ...], print_: str) -> int:
    from diopigen.aten.catalog import TorchMissing
    from diopigen.emit.writer import diff, write

    diagnostics = Diagnostics()
    try:
        plans = _plans(project, request, places, diagnostics)
    except TorchMissing as missing:
        print(f"{missing}; install it with 'pip install torch'", file=sys.stderr)
        return 1
    print_findings(diagnostics, project.root, request.error_format, notes=False)
    if plans is None:
        return 1
    differing = [change for plan in plans for change in plan.changes]
    if request.diff:
        for plan in plans:
            sys.stdout.writelines(diff(plan, plan.root))
    if request.check:
        for change in differing:
            print(f"{project.shown(change.path)} is not up to date ({change.kind})", file=sys.stderr)
    if request.check or request.diff:
        return 1 if differing else 0
    edited = [change for plan in plans for change in plan.edited]
    if edited and not request.force:
        for change in edited:
            print(f"{project.shown(change.path)} was edited by hand; nothing is written", file=sys.stderr)
        print("move the edit into schemas/ or templates/, or discard it with --force", file=sys.stderr)
        return 1
    for plan in plans:
        write(plan)
    record_fresh(_records(project, request, places), print_)
    _finish(request, places, inputs)
    if request.error_format == "human":
        print(_summary(plans))
    return 0


def _plans(project: Project, request: Request, places: list[Place], diagnostics: Diagnostics) -> "list[Plan] | None":
    """What writing would do at each place; None if an error stands in the way."""
    from diopigen import pipeline
    from diopigen.emit.writer import plan_writes
    from diopigen.targets.output import renderer

    program = pipeline.contract(project, diagnostics)
    if program is not None and request.vendor is not None:
        if {"aten", "compiler", "conformance"} & set(request.targets):
            program, _ = pipeline.with_aten(program, project, diagnostics)
        program = pipeline.with_vendor(program, project, request.vendor, diagnostics)
        if "conformance" in request.targets:
            program = pipeline.with_cases(program, diagnostics)
    if program is None or diagnostics.failed:
        return None
    render = renderer(project.templates)
    plans = []
    if request.contract:
        place = places[0]
        owned = tuple(place.path(prefix) for prefix in pipeline.CONTRACT_OWNED)
        outputs = place.placed(pipeline.contract_outputs(program, render))
        plans.append(plan_writes(outputs, place.root, place.manifest, owned))
    if request.vendor is not None:
        place = places[-1]
        outputs = pipeline.vendor_outputs(program, render, request.targets)
        owned = pipeline.vendor_owned(request.targets)
        plans.append(plan_writes(outputs, place.root, place.manifest, owned))
    return plans


def _finish(request: Request, places: list[Place], inputs: tuple[Path, ...]) -> None:
    """Touches the stamp that build tools watch."""
    if request.vendor is not None and not (request.check or request.diff):
        write_depfile(places[-1].root, inputs)


def _summary(plans: "list[Plan]") -> str:
    changed = sum(1 for plan in plans for change in plan.changes if change.kind != "orphan")
    removed = sum(1 for plan in plans for change in plan.changes if change.kind == "orphan")
    total = sum(len(plan.manifest.files) for plan in plans)
    return f"{total} files: {changed} written, {removed} removed, {total - changed} unchanged"
