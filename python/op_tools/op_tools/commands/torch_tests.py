"""`op-tools torch-tests`: torch's own tests of devices, in processes of their own."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

import click
import torch

from diopigen.atomic import write_bytes
from diopigen.text import suggestion
from diopigen.verbosity import quiet
from diopigen.vocabulary import torch_releases
from op_tools.devices import accelerator
from op_tools.results import results_folder, stamp
from op_tools.torch_tests.coverage.measured import measured
from op_tools.torch_tests.device import NoDevice, choose, name_of
from op_tools.torch_tests.interrupts import Interrupts
from op_tools.torch_tests.opinfo.summary import summary
from op_tools.torch_tests.outcome import BAD, Outcome
from op_tools.torch_tests.report import as_data, expected, failures, table
from op_tools.torch_tests.run import Found, TestPlan, TestRun
from op_tools.torch_tests.shard import WHOLE, BadShard, Shard, shard_of
from op_tools.torch_tests.skips import Skip, SkipsError, outdated, published, read_skips
from op_tools.torch_tests.suite import NoSuite, of_pytorch, own


def _shard(_: click.Context, __: click.Parameter, text: str | None) -> Shard:
    try:
        return WHOLE if text is None else shard_of(text)
    except BadShard as error:
        raise click.BadParameter(str(error)) from None


def _hardware(words: tuple[str, ...], tests: Path | None) -> tuple[str, ...]:
    """The words as torch spells them."""
    if words and tests is None:
        raise click.UsageError("--hw-classification is for the files of --tests")
    known = torch_releases.hardware() if words else ()
    if words and not known:
        raise click.UsageError(f"torch {torch.__version__} does not classify its tests; 2.14 and newer do")
    for word in words:
        if word.upper() not in known:
            hint = suggestion(word.upper(), known)
            choices = f"torch has {', '.join(known)}"
            raise click.UsageError(f"there is no classification '{word}'; {hint or choices}")
    return tuple(word.upper() for word in words)


@click.command("torch-tests")
@click.option("--device", help="Where the tests run; default: the accelerator of this machine.")
@click.option("--suite", "names", multiple=True, metavar="NAME", help="Only this suite; may be repeated.")
@click.option(
    "--shard", callback=_shard, metavar="i/n", help="Only the i-th of n parts, e.g. 1/4 to 4/4 on four machines."
)
@click.option("--only", multiple=True, metavar="GLOB", help="Only these tests, e.g. 'view_ops.*.test_versions_*'.")
@click.option("--all-dtypes", is_flag=True, help="For opinfo: every dtype of each entry, not float32 alone.")
@click.option("--coverage", is_flag=True, help="For opinfo: what became of each operator, for `op-tools coverage`.")
@click.option(
    "--tests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="The folder `test` of a checkout of PyTorch, of the version of the torch that is installed.",
)
@click.option("--host-tests", is_flag=True, help="With --tests: the classes too that are not of a device.")
@click.option(
    "--hw-classification",
    "hardware",
    multiple=True,
    metavar="WORD",
    help="With --tests: only the classes that torch classifies so, e.g. ACCELERATOR; may be repeated.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes at once."
)
@click.option("--timeout", type=click.FloatRange(0), default=300.0, show_default=True, help="Seconds for one test.")
@click.option("--skips", type=click.Path(path_type=Path), help="The list of tests that cannot pass, in place of ours.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="The JSON report.")
def command(
    device: str | None,
    names: tuple[str, ...],
    shard: Shard,
    only: tuple[str, ...],
    all_dtypes: bool,
    coverage: bool,
    tests: Path | None,
    host_tests: bool,
    hardware: tuple[str, ...],
    jobs: int,
    timeout: float,
    skips: Path | None,
    out: Path | None,
) -> None:
    """Run torch's own tests of devices and samples of operators, in separate processes.

    Without --tests, the suites over the databases in torch's wheel, each program held against the CPU: view_ops,
    type_promotion, reductions, indexing, autograd, error_inputs, unusual_calls, compiled_calls, modules, serialization,
    optimizers, and opinfo, every sample of every operator: forward, backward, in place and out=. With --tests,
    PyTorch's own files, with the classes that torch makes for the device; --suite names files then, those in folders
    as nn/test_dropout, and the usual six are run where none is given.

    A test is called SUITE.CLASS.TEST, one of opinfo opinfo.ENTRY.DTYPE. One that kills its process or gives no answer
    in time is an outcome; the others go on in a new process. What cannot pass stands in a list with the reason; such a
    test runs all the same, and an entry that is not needed is reported. A test's name says which shard it is in: the
    shards 1/n to n/n have each test once.

    The report goes to op_tools_results/op_torch_tests_result unless --out names a file. Ctrl-C writes it, too, with
    the rest as "never tested".

    Exit codes: 0 all tests pass, are skipped by torch or listed; 1 some do not, or an entry of the list is not needed;
    2 wrong usage, or no such device; 130 Ctrl-C.

    \b
    Examples:
      op-tools torch-tests --device dipu
      op-tools torch-tests --suite opinfo --all-dtypes --only 'opinfo.nn.functional.*'
      op-tools torch-tests --suite opinfo --coverage --out measured.json && op-tools coverage measured.json
      op-tools torch-tests --device cuda --shard 2/4
      op-tools torch-tests --tests ~/pytorch/test --suite test_view_ops
      op-tools torch-tests --tests ~/pytorch/test --hw-classification ACCELERATOR
    """
    begin = time.perf_counter()
    with Interrupts() as interrupts:
        try:
            where = device or accelerator()
            suites = own(names) if tests is None else of_pytorch(tests, names)
            listed = _listed(skips, where)
            path = _place(out, where)
            choose(where)
            listed = tuple(skip for skip in listed if fnmatchcase(name_of(where), skip.device))
        except (NoSuite, NoDevice, SkipsError) as error:
            _refuse(str(error))
        for option, given in (("--all-dtypes", all_dtypes), ("--coverage", coverage)):
            if given and not any(suite.path is None for suite in suites):
                raise click.UsageError(f"{option} is for the suite opinfo, which is not among those that run")
        if coverage and where != "dipu":
            raise click.UsageError(f"--coverage is for the device dipu: '{where}' does not count what ran on the CPU")
        plan = TestPlan(
            device=where,
            suites=suites,
            wanted=_wanted(only),
            shard=shard,
            host=host_tests,
            hardware=_hardware(hardware, tests),
            all_dtypes=all_dtypes,
            coverage=coverage,
            apart=tests is not None,
            jobs=jobs,
            timeout=timeout,
        )
        found = _run(plan, listed, interrupts)
        if not (found.outcomes or found.elsewhere):
            _refuse(f"no test matches {' '.join(only)}" if only else "the suites have no tests for the device")
        late = _outdated(found, listed, plan, partly=bool(only or hardware))
        _tell(found, late, plan, path, time.perf_counter() - begin)
    sys.exit(interrupts.code or int(bool(late) or any(outcome.outcome in BAD for outcome in found.outcomes)))


def _refuse(text: str) -> NoReturn:
    click.echo(f"op-tools: {text}", err=True)
    sys.exit(2)


def _listed(skips: Path | None, device: str) -> tuple[Skip, ...]:
    path = skips or published(device)
    return () if path is None else read_skips(path)


def _place(out: Path | None, device: str) -> Path:
    """Where the report goes; it is known before the tests run that it can."""
    name = f"torch_tests_{device}_pid{os.getpid()}_{stamp()}.json"
    path = out or results_folder() / "op_torch_tests_result" / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        _refuse(f"{path} cannot be written: it lies below a file")
    except OSError as error:
        _refuse(f"{path} cannot be written: {error.strerror}")
    if not os.access(path.parent, os.W_OK):
        _refuse(f"{path} cannot be written: its folder is closed to you")
    return path


def _wanted(only: tuple[str, ...]) -> Callable[[str], bool]:
    return lambda test: not only or any(fnmatchcase(test, glob) for glob in only)


def _run(plan: TestPlan, listed: Sequence[Skip], interrupts: Interrupts) -> Found:
    """What came of it; what the list speaks of is "listed" where it does not pass."""
    run = TestRun(plan)
    interrupts.stop = run.stop
    seen = sys.stderr.isatty() and not quiet()  # a log has no use for it
    found = run.found(lambda done, known: click.echo(f"\r{done} of {known}", err=True, nl=False) if seen else None)
    if seen:
        click.echo("", err=True)
    return replace(found, outcomes=tuple(_as_listed(outcome, listed) for outcome in found.outcomes))


def _as_listed(outcome: Outcome, listed: Sequence[Skip]) -> Outcome:
    entry = next((skip for skip in listed if skip.means(outcome.id)), None)
    if entry is None or not outcome.test or outcome.outcome not in BAD or outcome.outcome == "never tested":
        return outcome
    return replace(outcome, outcome="listed", reason=entry.reason, trace=f"{outcome.reason}\n{outcome.trace}")


def _outdated(found: Found, listed: Sequence[Skip], plan: TestPlan, partly: bool) -> tuple[str, ...]:
    """What is wrong with the list; of entries that mean no test only where all tests of the suite are known."""
    unknown = {outcome.suite for outcome in found.outcomes if not outcome.test}
    whole = frozenset() if partly else frozenset(suite.name for suite in plan.suites) - unknown
    outcomes = {outcome.id: outcome.outcome for outcome in found.outcomes if outcome.test}
    return outdated(listed, {**dict.fromkeys(found.elsewhere, ""), **outcomes}, whole)


def _tell(found: Found, late: Sequence[str], plan: TestPlan, path: Path, seconds: float) -> None:
    calls = [outcome.details.pop("calls", ()) for outcome in found.outcomes]
    data = as_data(found, plan.device, plan.shard, seconds, late)
    if plan.coverage:
        data["coverage"] = asdict(measured(calls, every=plan.all_dtypes, shard=str(plan.shard)))
    try:
        write_bytes(path, (json.dumps(data, indent=1) + "\n").encode())
    except OSError as error:
        _refuse(f"{path} cannot be written: {error.strerror}")
    entries = summary(found.outcomes, fallbacks=plan.device == "dipu")
    for text in (failures(found.outcomes), "\n".join(late), table(found.outcomes), expected(found.outcomes), entries):
        if text:
            click.echo(text)
    shard = "" if plan.shard == WHOLE else f", part {plan.shard}, {len(found.elsewhere)} tests in others"
    click.echo(f"{plan.device}{shard}, {seconds:.0f} s: {path}")
