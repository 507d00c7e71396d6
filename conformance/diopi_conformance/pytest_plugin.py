"""The cases as pytest items: `pytest -p diopi_conformance.pytest_plugin --diopi-vendor droplet`.

Without other arguments the vendor's plan is what is collected; else name it, or the folder that it is in. One worker
process serves all cases of a pytest process. Items have the marks `family_X`, `dtype_X`, `view_X` and `layout_X`.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diopi_conformance.cases.model_cases import model_cases
from diopi_conformance.cases.plan import Case, CasePlan, PlanError, read_plan
from diopi_conformance.cases.selection import Selection
from diopi_conformance.cases.variants import Variant, varied
from diopi_conformance.expected.stored_reader import DataError
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.places import places_of
from diopi_conformance.process.worker_pool import Unusable
from diopi_conformance.running.case_worker import CaseWorker, RunRequest
from diopi_conformance.running.execution import RunError, Settings, expectations_of, known_of, libraries_of
from diopi_conformance.running.known_failures import Known, explained, outdated

_OPTIONS = (
    ("vendor", "A folder of vendors/; asks for its conformance cases."),
    ("plan", "A plan.json; generated/V/conformance/plan.json."),
    ("libraries", "The folder of the .so files; build/V/lib."),
    ("runtime", "libdiopirt.so, where it lies elsewhere."),
    ("data", "Results that 'diopi-conformance data' wrote, in place of PyTorch."),
    ("known", "Failures that are known; vendors/V/known_failures.yaml."),
    ("origin", "'row': only rows of schemas; 'model': only calls of models."),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run, with --diopi- in front."""
    group = parser.getgroup("diopi", "conformance of a vendor's library")
    for name, text in _OPTIONS:
        group.addoption(f"--diopi-{name}", help=text)
    group.addoption("--diopi-id", action="append", default=[], metavar="GLOB", help="Only these cases.")
    group.addoption("--diopi-seed", type=int, default=0, help="Other random numbers.")
    group.addoption("--diopi-timeout", type=float, default=60.0, help="Seconds for one case.")
    group.addoption("--diopi-strict", action="store_true", help="Functions that the library lacks fail.")


def pytest_configure(config: pytest.Config) -> None:
    """Where a vendor is named and no file is, its plan is what is collected."""
    if config.getoption("diopi_vendor"):
        config.stash[_SESSION] = _Session(config)
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args[:] = [str(config.stash[_SESSION].plan_path)]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The plan of the vendor that was asked for."""
    session = parent.config.stash.get(_SESSION, None)
    if session is None or file_path != session.plan_path:
        return None
    collector: pytest.Collector = _PlanFile.from_parent(parent, path=file_path)
    return collector


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remembers verdicts, also those of other processes, for the end of the session."""
    if report.when == "call":
        for name, verdict in report.user_properties:
            if name.startswith(_PROPERTY):
                _VERDICTS[name.removeprefix(_PROPERTY)] = str(verdict)


def pytest_sessionstart() -> None:
    _VERDICTS.clear()


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Ends the worker. Leaks, and known failures that pass now, fail the session."""
    ours = session.config.stash.get(_SESSION, None)
    if ours is not None:
        ours.end()
        if ours.sentences and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return (yield)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """What is wrong beside the cases that failed."""
    ours = config.stash.get(_SESSION, None)
    for sentence in ours.sentences if ours is not None else ():
        terminalreporter.write_line(sentence, red=True)


_PROPERTY = "diopi:"  # in front of the case whose verdict a property of a report is
_VERDICTS: dict[str, str] = {}  # by case, of this session


class _Session:
    """What all items of a pytest process share."""

    def __init__(self, config: pytest.Config) -> None:
        self.strict: bool = config.getoption("diopi_strict")
        self.sentences: list[str] = []
        self._controls = not hasattr(config, "workerinput")  # and is not one of xdist's workers
        self._ids: tuple[str, ...] = tuple(config.getoption("diopi_id"))
        self._origin: str = config.getoption("diopi_origin") or ""
        self._settings = Settings(
            vendor=config.getoption("diopi_vendor"),
            out=Path(),
            libraries=_path(config, "libraries"),
            runtime=_path(config, "runtime"),
            data=_path(config, "data"),
            known=_path(config, "known"),
            timeout=config.getoption("diopi_timeout"),
            variant=Variant(seed=config.getoption("diopi_seed")),
        )
        named = _path(config, "plan")
        self.plan_path = (named or places_of(self._settings.vendor).plan).resolve()
        self.plan: CasePlan | None = None
        self.known: tuple[Known, ...] = ()
        self._worker: CaseWorker | None = None

    def cases(self) -> tuple[Case, ...]:
        """Those that were asked for. Raises UsageError."""
        try:
            plan = read_plan(self.plan_path)
            self.plan = replace(plan, cases=plan.cases + model_cases(plan))
            self.known = known_of(self.plan, self._settings)
            wanted = Selection(ids=self._ids, origin=self._origin).of(self.plan)
            cases = varied(self.plan, wanted, self._settings.variant)
            self._worker = CaseWorker(
                RunRequest(
                    plan=self.plan,
                    cases=cases,
                    libraries=libraries_of(self._settings.vendor, self._settings.libraries, self._settings.runtime),
                    time_limit=self._settings.timeout,
                    expectations=expectations_of(self.plan, cases, self._settings),
                )
            )
        except (PlanError, RunError) as error:
            raise pytest.UsageError(str(error)) from None
        return cases

    def outcome(self, case: Case) -> Outcome:
        """Runs the case."""
        assert self._worker is not None
        try:
            (found,) = explained(self._worker.outcomes([case]), self.known)
        except (Unusable, DataError) as error:
            pytest.exit(str(error), returncode=2)
        return found

    def end(self) -> None:
        """Ends the worker and finds out what is wrong beside cases."""
        if self._worker is not None and (leak := self._worker.process.finish()):
            self.sentences.append(leak)
        if self._controls:
            told = [Outcome(id=name, function="", op="", verdict=Verdict(v)) for name, v in _VERDICTS.items()]
            self.sentences.extend(outdated(told, self.known))


_SESSION = pytest.StashKey[_Session]()


def _path(config: pytest.Config, name: str) -> Path | None:
    text = config.getoption(f"diopi_{name}")
    return Path(text) if text else None


class _PlanFile(pytest.File):
    """A plan; its items are cases."""

    def collect(self) -> Iterator[pytest.Item]:
        session = self.config.stash[_SESSION]
        cases = session.cases()
        marks = _Marks(self.config)
        assert session.plan is not None
        for case in cases:
            item: _Item = _Item.from_parent(self, name=case.id, case=case)
            marks.put(item, session.plan.functions[case.function].topic)
            yield item


class _Marks:
    """Marks of items, each registered when it is first put."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._known: dict[str, pytest.MarkDecorator] = {}

    def put(self, item: "_Item", family: str) -> None:
        case = item.case
        words = [f"family_{family}", f"view_{case.view}", *(f"dtype_{d}" for d in dict.fromkeys(case.dtypes.values()))]
        for word in words + ([f"layout_{case.layout}"] if case.layout else []):
            mark = self._known.get(word)
            if mark is None:
                kind, _, value = word.partition("_")
                self._config.addinivalue_line("markers", f"{word}: conformance cases whose {kind} is {value}")
                mark = self._known[word] = getattr(pytest.mark, word)
            item.own_markers.append(mark.mark)
            item.keywords[word] = mark


class _CaseFailed(Exception):
    """The message of an outcome."""


class _Item(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **rest: Any) -> None:
        super().__init__(**rest)
        self.case = case

    def runtest(self) -> None:
        session = self.config.stash[_SESSION]
        outcome = session.outcome(self.case)
        self.user_properties.append((f"{_PROPERTY}{outcome.id}", outcome.verdict.value))
        text = f"{outcome.verdict.value}: {outcome.message}"
        match outcome.verdict:
            case Verdict.PASS:
                return
            case _ if outcome.known:
                pytest.xfail(f"{outcome.known} ({text})")
            case Verdict.SKIPPED:
                pytest.skip(text)
            case Verdict.NOT_IMPLEMENTED if not session.strict:
                pytest.skip(text)
            case _:
                raise _CaseFailed(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The message alone where the case failed: our own frames say nothing about the vendor."""
        return str(excinfo.value) if excinfo.errisinstance(_CaseFailed) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, self.name
