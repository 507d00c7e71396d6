"""The command: `python -m tools.torch_tests`."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import click

from tools.torch_tests.report import BAD, as_data, failures, table
from tools.torch_tests.run import Outcome, Plan, outcomes
from tools.torch_tests.skips import Skip, SkipsError, outdated, read_skips

ROOT = Path(__file__).resolve().parents[2]
SUITES = Path(__file__).resolve().parent / "suites"
SKIPS = Path(__file__).resolve().parent / "skips.yaml"
# The files of PyTorch's folder of tests that a backend is held to.
USUAL = (
    "test_view_ops",
    "test_type_promotion",
    "test_reductions",
    "test_indexing",
    "test_autograd",
    "test_serialization",
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--tests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="The folder `test` of a checkout of PyTorch, of the version of the torch that is installed.",
)
@click.option("--only", multiple=True, metavar="GLOB", help="Only these tests, ex. 'test_view_ops.*.test_unfold_*'.")
@click.option("--host-tests", is_flag=True, help="The classes too that are not of a device.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True)
@click.option("--timeout", type=click.FloatRange(0), default=120.0, show_default=True, help="Seconds for one test.")
@click.option("--skips", type=click.Path(path_type=Path), default=SKIPS, help="The list of tests that cannot pass.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=ROOT / "conformance_results" / "torch_tests.json",
    help="The JSON report.",
)
def main(
    names: tuple[str, ...],
    tests: Path | None,
    only: tuple[str, ...],
    host_tests: bool,
    jobs: int,
    timeout: float,
    skips: Path,
    out: Path,
) -> None:
    """Run tests in the form of torch's own on dipu.

    Without --tests, the suites of this project over the databases that torch's wheel has: views, type promotion,
    reductions, indexing, autograd, errors, modules, serialization, optimizers. With --tests, PyTorch's own files,
    instantiated for dipu through torch's PrivateUse1TestBase; NAMEs are those of files, and the usual six are run where
    none is given:

    \b
      python -m tools.torch_tests view_ops autograd
      python -m tools.torch_tests --tests ~/pytorch/test test_view_ops
      python -m tools.torch_tests --tests ~/pytorch/test --only '*.test_unfold_*'

    A test that kills its process or gives no answer in time is an outcome; the others go on in a new process. What
    cannot pass stands in skips.yaml with the reason; such a test runs all the same, and an entry that is not needed is
    reported.

    Exit codes: 0 all tests pass, are skipped by torch or listed; 1 some do not, or an entry of the list is not needed;
    2 wrong usage.
    """
    begin = time.perf_counter()
    try:
        listed = read_skips(skips)
    except SkipsError as error:
        raise click.UsageError(str(error)) from None
    os.environ["PYTORCH_TESTING_DEVICE_ONLY_FOR"] = "privateuse1"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    plan = Plan(
        files=_files(names, tests),
        wanted=_wanted(only),
        host=host_tests,
        apart=tests is not None,
        jobs=jobs,
        timeout=timeout,
    )
    found = _run(plan, listed)
    if not found:
        raise click.UsageError(f"no test matches {' '.join(only)}")
    whole = frozenset() if only else frozenset(path.stem for path in plan.files)
    late = outdated(listed, _unlisted(found), whole)
    seconds = time.perf_counter() - begin
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(as_data(found, seconds, late), indent=1), encoding="utf-8")
    for text in (failures(found), "\n".join(late), table(found)):
        if text:
            click.echo(text)
    click.echo(f"{seconds:.0f} s; {out}")
    sys.exit(1 if late or any(outcome.outcome in BAD for outcome in found) else 0)


def _files(names: tuple[str, ...], tests: Path | None) -> tuple[Path, ...]:
    folder = SUITES if tests is None else tests.resolve()
    known = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    usual = known if tests is None else [name for name in USUAL if name in known]
    if not names and not usual:
        raise click.UsageError(f"'{tests}' has none of {', '.join(USUAL)}: it is not the folder `test` of PyTorch")
    for name in names:
        if name not in known:
            raise click.UsageError(f"'{folder}' has no file '{name}.py'; it has {', '.join(known)}")
    return tuple(folder / f"{name}.py" for name in dict.fromkeys(names or usual))


def _wanted(only: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda test: not only or any(fnmatchcase(test, glob) for glob in only)


def _run(plan: Plan, listed: Sequence[Skip]) -> list[Outcome]:
    """Every outcome, in the order of files and tests; what the list speaks of is "listed" where it does not pass."""
    found: list[Outcome] = []
    for outcome, progress in outcomes(plan):
        if outcome is not None:
            found.append(_as_listed(outcome, listed))
        click.echo(f"\r{progress.done} of {progress.known}", err=True, nl=False)
    click.echo("", err=True)
    order = {path.stem: index for index, path in enumerate(plan.files)}
    return sorted(found, key=lambda outcome: (order[outcome.file], outcome.test))


def _as_listed(outcome: Outcome, listed: Sequence[Skip]) -> Outcome:
    entry = next((skip for skip in listed if skip.means(outcome.id)), None)
    if entry is None or not outcome.test or outcome.outcome not in BAD:
        return outcome
    return replace(outcome, outcome="listed", reason=entry.reason, trace=f"{outcome.reason}\n{outcome.trace}")


def _unlisted(found: Sequence[Outcome]) -> dict[str, str]:
    return {outcome.id: outcome.outcome for outcome in found if outcome.test}


if __name__ == "__main__":
    main()
