"""`diopi-conformance repro`: one case again, made small, and written as files that show it by themselves."""

import difflib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from diopi_conformance.cases.plan import Case, CasePlan, PlanError, read_plan
from diopi_conformance.cases.variants import Variant, varied
from diopi_conformance.commands.filters import vendor_option
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.places import places_of
from diopi_conformance.process.worker_pool import Libraries, Unusable
from diopi_conformance.report.model import BAD
from diopi_conformance.report.wording import reason
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase
from diopigen.verbosity import tell

_PATIENCE = 60  # seconds for the file that was written, on top of what it gives its call
_SAID = 1 << 16  # bytes of what it says


@click.command("repro")
@click.argument("case_id", metavar="ID")
@vendor_option
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the run that failed.")
@click.option("--nhwc", is_flag=True, help="As the run was told.")
@click.option("--four-bytes", is_flag=True, help="As the run was told.")
@click.option("--plan", "plan_path", type=click.Path(path_type=Path), help="A plan.json.")
@click.option("--libraries", type=click.Path(path_type=Path), help="The folder of the .so files; build/V/lib.")
@click.option("--runtime", type=click.Path(path_type=Path), help="libdiopirt.so, where it lies elsewhere.")
@click.option("--include", type=click.Path(path_type=Path), default=Path("generated/include"), show_default=True,
              help="The headers that the C file is compiled with.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), default=Path("repro"), show_default=True, help="A folder.")
@click.option("--timeout", type=click.IntRange(1), default=20, show_default=True, help="Seconds for one call.")
@click.option("--attempts", type=click.IntRange(1), default=400, show_default=True, help="Calls while shrinking.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="For shrinking, all in all.")
@click.option("--shrink/--no-shrink", default=True, help="Look for a smaller case that fails alike.  [default: shrink]")
@click.option("--force", is_flag=True, help="Write the files of a case that passes, too.")
def command(case_id: str, vendor: str, plan_path: Path | None, **options: Any) -> None:
    """Run the case ID, find the smallest one that fails in the same way, and write it as two files.

    The files, one in Python and one in C, have all data in them and need neither this program nor PyTorch: they print
    what is wrong and exit with 1, or with 0 once it is fixed.

    \b
    Examples:
      diopi-conformance repro add/f32/0 --vendor droplet
      diopi-conformance repro softmax/f16/strided/2 --vendor droplet --out for_the_bug_report

    Exit codes: 0 the case passes, or the library does not have the function; 1 it fails; 2 wrong usage.
    """
    places = places_of(vendor)
    plan = _plan(plan_path or places.plan)
    variant = Variant(seed=options["seed"], nhwc=options["nhwc"], four_bytes=options["four_bytes"])
    (case,) = varied(plan, (_case(plan, case_id),), variant)
    folder = options["libraries"] or places.libraries
    libraries = Libraries(runtime=options["runtime"] or folder / "libdiopirt.so", vendor=folder / "libdiopi_impl.so")
    for path in (libraries.runtime, libraries.vendor):
        if not path.exists():
            raise click.UsageError(f"there is no {path}; build it with '{places.build}'")
    try:
        code = _repro(plan, case, libraries, options)
    except Unusable as error:
        raise click.UsageError(str(error)) from None
    sys.exit(code)


def _plan(path: Path) -> CasePlan:
    try:
        return read_plan(path)
    except PlanError as error:
        raise click.UsageError(str(error)) from None


def _case(plan: CasePlan, case_id: str) -> Case:
    found = next((case for case in plan.cases if case.id == case_id), None)
    if found is not None:
        return found
    beginning = case_id.partition("/")[0]
    like = [case.id for case in plan.cases if case.id.partition("/")[0] == beginning]
    if not like:
        words = {case.id.partition("/")[0]: case.id for case in plan.cases}
        like = [words[word] for word in difflib.get_close_matches(beginning, words, n=1)]
    near = difflib.get_close_matches(case_id, like, n=1, cutoff=0.0)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise click.UsageError(f"there is no case '{case_id}'{hint}")


def _repro(plan: CasePlan, case: Case, libraries: Libraries, options: dict[str, Any]) -> int:
    """The exit code. Raises Unusable."""
    from diopi_conformance.repro.shrink import Limits, Shrinker, described
    from diopi_conformance.running.case_worker import CaseWorker, RunRequest

    worker = CaseWorker(RunRequest(plan=plan, cases=(case,), libraries=libraries, time_limit=options["timeout"]))

    def attempt(candidate: Case) -> Outcome:
        return next(iter(worker.outcomes([candidate])))

    try:
        outcome = attempt(case)
        click.echo(f"{outcome.verdict.value}: {reason(outcome) or described(case)}")
        bad = outcome.verdict in BAD
        if outcome.verdict is Verdict.UNSOUND:
            click.echo("the case itself is wrong, not the library: fix the schema or the reference")
            return 1
        if not bad and not (outcome.verdict is Verdict.PASS and options["force"]):
            return 0
        if bad and options["shrink"]:
            tell(f"from {described(case)}")
            limits = Limits(attempts=options["attempts"], seconds=options["seconds"])
            shrinker = Shrinker(plan=plan, attempt=attempt, tell=lambda text: tell(f"  {text}"), limits=limits)
            case, outcome = shrinker.smallest(case, outcome)
            tell(f"{len(shrinker.tried) - 1} simpler cases tried; the smallest: {reason(outcome)}")
    finally:
        worker.process.stop()
    _written(plan, case, outcome, libraries, options)
    return 1 if bad else 0


def _written(plan: CasePlan, case: Case, outcome: Outcome, libraries: Libraries, options: dict[str, Any]) -> None:
    """Writes the files and makes sure that they show what they should."""
    from diopi_conformance.prepare import prepare
    from diopi_conformance.repro.example import TooLarge, Unwritable
    from diopi_conformance.repro.writer import Destination, write_files

    absolute = Libraries(runtime=libraries.runtime.absolute(), vendor=libraries.vendor.absolute())
    place = Destination(
        folder=options["out"],
        libraries=absolute,
        include=options["include"].absolute(),
        seconds=options["timeout"],
    )
    try:
        files = write_files(plan, prepare(plan, case), outcome, place)
    except (TooLarge, Unwritable, UnfitCase, UnsoundCase) as error:
        raise click.UsageError(f"nothing is written: {error}") from None
    click.echo(f"wrote {files.python} and {files.c}")
    code, text = _tried(files.python, options["timeout"] + _PATIENCE)
    if code == (1 if outcome.verdict in BAD else 0):
        click.echo(f"{files.python.name} says: {text}")
    else:
        what = "the calls alone do not show it" if outcome.verdict in BAD else "it should have found nothing"
        click.echo(f"warning: {files.python.name} says '{text}'; {what}", err=True)


def _tried(path: Path, seconds: float) -> tuple[int, str]:
    """Exit code and first line of a stand-alone file."""
    # Files and no pipes: a process that the vendor's function leaves behind may hold them for ever.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([sys.executable, path], stdout=out, stderr=err, start_new_session=True)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return -1, f"nothing in {seconds:g} s"
        said = b""
        for stream in (out, err):
            stream.seek(0)
            said += stream.read(_SAID)
    lines = said.decode(errors="replace").strip().splitlines() or [f"nothing, exit code {code}"]
    return code, lines[0]
