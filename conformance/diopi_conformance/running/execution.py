"""A whole run: from what was asked for to the report of what came of it."""

import importlib.util
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from diopi_conformance.cases.plan import Case, CasePlan
from diopi_conformance.cases.variants import Variant
from diopi_conformance.expected.expectations import Expectations
from diopi_conformance.expected.stored_reader import INDEX, DataError, Stored
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.places import places_of
from diopi_conformance.process.worker_pool import Libraries, Unusable
from diopi_conformance.report import Report, axes_of
from diopi_conformance.running.engine import Engine, RunRequest
from diopi_conformance.running.forks import ForkDied
from diopi_conformance.running.journal import (
    Identity,
    Journal,
    JournalError,
    digest_of,
    journal_path,
    resumed,
    suite_digest,
)
from diopi_conformance.running.known_failures import Known, KnownError, explained, outdated, read_known
from diopi_conformance.running.progress import Meter, metered
from diopigen.verbosity import detail

DATA = Path("conformance_data")  # holds a folder of stored results for each vendor

_FINE = (Verdict.PASS, Verdict.NOT_IMPLEMENTED, Verdict.SKIPPED)


class RunError(Exception):
    """A run cannot begin; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run cases; places are those of the command line."""

    vendor: str
    out: Path  # of the report; the journal lies beside it
    libraries: Path | None = None  # the folder; that of places_of() if None
    runtime: Path | None = None
    known: Path | None = None  # the vendor's known failures; those of places_of() if None
    data: Path | None = None  # stored results; None: PyTorch where there is one
    jobs: int = 1
    timeout: float = 60.0
    strict: bool = False
    resume: bool = False
    variant: Variant = field(default_factory=Variant)


def execute(plan: CasePlan, cases: Sequence[Case], settings: Settings) -> Report:
    """Runs the cases; an interrupt ends the run with a report of what ran. Raises RunError."""
    libraries = libraries_of(settings.vendor, settings.libraries, settings.runtime)
    expectations = expectations_of(plan, cases, settings)
    known = known_of(plan, settings)
    identity = Identity(
        vendor=settings.vendor,
        plan=plan.digest,
        suite=suite_digest(),
        library=digest_of(libraries.vendor),
        variant=settings.variant.document(),
    )
    journal = journal_path(settings.out)
    wanted = {case.id for case in cases}
    try:
        earlier = resumed(journal, identity) if settings.resume else {}
        outcomes = {name: outcome for name, outcome in earlier.items() if name in wanted}
        run = RunRequest(
            plan=plan,
            cases=[case for case in cases if case.id not in outcomes],
            libraries=libraries,
            jobs=settings.jobs,
            time_limit=settings.timeout,
            expectations=expectations,
        )
        begin = time.perf_counter()
        leaks, interrupted = _run(run, outcomes, Journal(journal, identity, earlier), len(cases))
    except (Unusable, DataError, JournalError) as error:
        raise RunError(str(error)) from None
    return Report(
        vendor=settings.vendor,
        planned=len(cases),
        outcomes=explained(outcomes.values(), known),
        axes=axes_of(plan, cases),
        strict=settings.strict,
        seconds=time.perf_counter() - begin,
        variant=settings.variant,
        leaks=leaks,
        interrupted=interrupted,
        outdated=outdated(tuple(outcomes.values()), known),
    )


def known_of(plan: CasePlan, settings: Settings) -> tuple[Known, ...]:
    """What the vendor knows to fail. Raises RunError where the file is wrong."""
    path = settings.known or places_of(settings.vendor).known
    if settings.known is not None and not path.exists():
        raise RunError(f"there is no {path}")
    try:
        return read_known(path, plan.cases, date.today())
    except KnownError as error:
        raise RunError(str(error)) from None


def _run(run: RunRequest, outcomes: dict[str, Outcome], journal: Journal, planned: int) -> tuple[tuple[str, ...], bool]:
    """Adds what becomes of the cases to `outcomes`; gives what sanitizers said, and whether Ctrl-C came."""
    with metered(planned, "running") as meter:
        meter.advance(len(outcomes), sum(o.verdict not in _FINE for o in outcomes.values()))
        engine = Engine(run, lambda outcome: _note(outcome, outcomes, journal, meter))
        interrupted = False
        try:
            engine.execute()
        except KeyboardInterrupt:
            interrupted = True
            print("interrupted; the report holds what ran, --resume goes on", file=sys.stderr)
        except ForkDied as death:
            print(f"{death}; the report holds what ran, --resume goes on", file=sys.stderr)
        finally:
            journal.close(complete=len(outcomes) == planned)
    return tuple(engine.leaks), interrupted


def _note(outcome: Outcome, outcomes: dict[str, Outcome], journal: Journal, meter: Meter) -> None:
    outcomes[outcome.id] = outcome
    journal.write(outcome)
    meter.advance(1, int(outcome.verdict not in _FINE))


def libraries_of(vendor: str, folder: Path | None = None, runtime: Path | None = None) -> Libraries:
    """What a worker loads, by default from where places_of() says. Raises RunError where it is not there."""
    places = places_of(vendor)
    place = folder or places.libraries
    found = Libraries(runtime=runtime or place / "libdiopirt.so", vendor=place / "libdiopi_impl.so")
    detail(f"libraries: {found.vendor}, {found.runtime}")
    for path in (found.runtime, found.vendor):
        if not path.exists():
            raise RunError(f"there is no {path}; build it with '{places.build}'")
    return found


def expectations_of(plan: CasePlan, cases: Sequence[Case], settings: Settings) -> Expectations | None:
    """Where expected results come from: None is PyTorch; what is stored serves where that is missing.

    Raises RunError where there is neither, or what is stored is not of these cases.
    """
    folder = settings.data
    if folder is None and importlib.util.find_spec("torch") is None:
        folder = DATA / settings.vendor
        if not (folder / INDEX).exists():
            raise RunError(
                "PyTorch computes what to expect, and there is none here; install it, or write results where there is: "
                f"'diopi-conformance data --vendor {settings.vendor} --out DIR', copy them, and run with --data DIR"
            )
    if folder is None:
        return None
    try:
        stored = Stored(folder, plan, settings.variant.seed)
    except DataError as error:
        raise RunError(str(error)) from None
    if lacking := stored.lacking(cases):
        raise RunError(
            f"{folder} has no results for {len(lacking)} of the cases, e.g. '{lacking[0]}'; "
            "choose fewer, or write it again"
        )
    return stored
