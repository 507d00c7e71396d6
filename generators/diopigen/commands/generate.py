"""Runs targets and writes, checks or shows what they give."""

import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from diopigen.boundary import UNUSABLE
from diopigen.commands.report import print_findings
from diopigen.diagnostics import Diagnostics
from diopigen.emit.depfile import write_depfile
from diopigen.emit.fresh import (
    Inputs,
    Record,
    common_inputs,
    file_hashes,
    installed_folders,
    request_words,
    vendor_inputs,
)
from diopigen.emit.place import Destination, contract_place, vendor_place, wrappers_place
from diopigen.project import Project
from diopigen.verbosity import tell

if TYPE_CHECKING:
    from diopigen.emit.writer import WritePlan
    from diopigen.model.program import Program
    from diopigen.splice.last import Last


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one call of the command line asks for."""

    contract: bool  # the headers and the editors' schema
    targets: tuple[str, ...]  # e.g. ("adaptor", "kernels")
    vendor: str | None
    wrappers: bool = False  # of the installed torch's operators
    check: bool = False
    diff: bool = False
    out: Path | None = None
    force: bool = False
    error_format: str = "human"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where the outputs of a request go; None for what is not asked for."""

    contract: Destination | None
    wrappers: Destination | None
    vendor: Destination | None


class _Unusable(Exception):
    """The machine lacks what a run needs; the text says what to do."""


def generate(project: Project, request: Request) -> int:
    """Writes the outputs that `request` names; the exit code: 0 clean, 1 findings or, with check, differences, or 2."""
    with alone(project, request):
        places = _places(project, request)
        records = tuple(_records(project, request, places))
        if all(record.fresh() for record in records):
            _finish(project, request, records)
            return 0
        return _run(project, request, places, records)


@contextmanager
def alone(project: Project, request: Request) -> Iterator[None]:
    """Waits for a run that writes below the same folder, such as that of a build beside CMake's own."""
    if request.check or request.diff:
        yield
        return
    folder = (request.out or project.generated).absolute()
    project.cache.mkdir(parents=True, exist_ok=True)
    lock = project.cache / f"writing-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}.lock"
    with lock.open("w") as held:  # which frees it, however this process ends
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _places(project: Project, request: Request) -> _Places:
    out = None if request.out is None else request.out.absolute()
    return _Places(
        contract=contract_place(project, out) if request.contract else None,
        wrappers=wrappers_place(project, out) if request.wrappers else None,
        vendor=None if request.vendor is None else vendor_place(project, out, request.vendor),
    )


def _records(project: Project, request: Request, places: _Places) -> Iterator[Record]:
    """One for the wrappers and one for the vendor, beside their files; for the contract alone one in the cache."""
    contract = () if places.contract is None else (places.contract,)
    config = None if project.convert_config is None else project.shown(project.convert_config)

    common = common_inputs(project)
    hashes = file_hashes(project.root, common)

    def record(folder: Path, own: tuple[Destination, ...], words: tuple[str, ...], vendor: str | None) -> Record:
        beside = Inputs() if vendor is None else vendor_inputs(project, vendor)
        of_all = hashes + file_hashes(project.root, beside)
        outputs = tuple((place.root, place.manifest) for place in (*contract, *own))
        return Record(folder=folder, words=words, inputs=common + beside, hashes=of_all, outputs=outputs)

    if places.wrappers is not None:
        words = request_words(request.contract, ("aten",), None, None)
        yield record(places.wrappers.root, (places.wrappers,), words, None)
    if places.vendor is not None:
        words = request_words(request.contract, request.targets, request.vendor, config)
        words += tuple(map(project.shown, project.more_schemas))
        yield record(places.vendor.root, (places.vendor,), words, request.vendor)
    if places.wrappers is None and places.vendor is None:
        yield record(project.cache, (), request_words(request.contract, (), None, config), None)


def _run(project: Project, request: Request, places: _Places, records: tuple[Record, ...]) -> int:
    from diopigen.emit.writer import diff, write
    from diopigen.splice.last import FILE, read_last, write_last

    diagnostics = Diagnostics()
    path = records[-1].folder / FILE
    last = read_last(path, project.shown(path), diagnostics)
    try:
        last, plans = _planned(project, request, places, records, last, diagnostics)
    except _Unusable as reason:
        print(reason, file=sys.stderr)
        return UNUSABLE
    print_findings(diagnostics, project.root, request.error_format, notes=False)
    if plans is None or last is None:
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
    write_last(path, last)
    for record in records:
        record.keep()
    _finish(project, request, records)
    if request.error_format == "human":
        tell(_summary(plans))
    return 0


def _planned(
    project: Project,
    request: Request,
    places: _Places,
    records: tuple[Record, ...],
    last: "Last | None",
    diagnostics: Diagnostics,
) -> "tuple[Last | None, list[WritePlan] | None]":
    """What the next run is to know, and what writing would do at each place; None if an error stands in the way.

    Raises _Unusable.
    """
    from diopigen.splice.last import Last, entries

    texts = entries(project)
    plans = None if last is None else _spliced(project, request, places, records, texts, last)
    if last is not None and plans is not None:
        diagnostics.add(*last.found)
        return replace(last, texts=texts), plans
    program, plans = _plans(project, request, places, diagnostics)
    return None if program is None else Last.of(program, texts, diagnostics), plans


def _spliced(
    project: Project,
    request: Request,
    places: _Places,
    records: tuple[Record, ...],
    texts: dict[str, str],
    last: "Last",
) -> "list[WritePlan] | None":
    """What writing would do where the entries alone changed, and only in what they say themselves; None elsewhere."""
    changed = {name: text for name, text in texts.items() if name in last.texts and last.texts[name] != text}
    paths = {name: f"{project.home / name}".removeprefix(f"{project.root}/") for name in changed}
    earlier = {(paths[name], text): last.texts[name] for name, text in changed.items()}
    if not all(record.was_fresh(earlier) for record in records):
        return None
    from diopigen.splice.entries import Beyond, edits
    from diopigen.splice.outputs import spliced
    from diopigen.targets.output import OF_ENTRIES, renderer

    render = renderer(project.templates)
    of_vendor = tuple(name for name in request.targets if name in OF_ENTRIES)
    printed = {places.contract: ("header",), places.wrappers: (), places.vendor: of_vendor}
    try:
        found = tuple(edits(last, texts))
        return [spliced(found, place, targets, render) for place, targets in printed.items() if place is not None]
    except Beyond:
        return None


def _plans(
    project: Project, request: Request, places: _Places, diagnostics: Diagnostics
) -> "tuple[Program | None, list[WritePlan] | None]":
    """The program and what writing would do at each place; None if an error stands in the way. Raises _Unusable."""
    from diopigen import pipeline
    from diopigen.aten.catalog import TorchMissing
    from diopigen.emit import outputs as written
    from diopigen.emit.writer import plan_writes
    from diopigen.targets.output import renderer

    stages = pipeline.stages(request.wrappers, request.targets)
    try:
        program = pipeline.run(project, diagnostics, *stages, vendor=request.vendor, keep=True)
    except TorchMissing as missing:
        raise _Unusable(f"{missing}; install it with 'pip install torch'") from missing
    if program is None or diagnostics.failed:
        return program, None
    render = renderer(project.templates)
    shared = program.contract()
    plans = []
    if (place := places.contract) is not None:
        owned = tuple(place.path(prefix) for prefix in written.CONTRACT_OWNED)
        with written.known_outputs("contract", shared, project, diagnostics) as known:
            outputs = place.placed(written.contract_outputs(shared, render, known))
        plans.append(plan_writes(outputs, place.root, place.manifest, owned))
    if (place := places.wrappers) is not None:
        with written.known_outputs("wrappers", shared, project, diagnostics) as known:
            outputs = written.wrapper_outputs(shared, render, known)
        plans.append(plan_writes(outputs, place.root, place.manifest, written.WRAPPERS_OWNED))
    if (place := places.vendor) is not None:
        with written.known_outputs(f"outputs-{request.vendor}", program, project, diagnostics) as known:
            outputs = written.vendor_outputs(program, render, known, request.targets)
        owned = written.vendor_owned(request.targets)
        plans.append(plan_writes(outputs, place.root, place.manifest, owned))
    return program, plans


def _finish(project: Project, request: Request, records: tuple[Record, ...]) -> None:
    """Touches the stamps that build tools watch."""
    if request.check or request.diff:
        return
    for record in records:
        if record.folder != project.cache:
            write_depfile(record.folder, (*record.inputs.files, *record.inputs.folders, *installed_folders()))


def _summary(plans: "list[WritePlan]") -> str:
    changed = sum(1 for plan in plans for change in plan.changes if change.kind != "orphan")
    removed = sum(1 for plan in plans for change in plan.changes if change.kind == "orphan")
    total = sum(len(plan.manifest.files) for plan in plans)
    return f"{total} files: {changed} written, {removed} removed, {total - changed} unchanged"
