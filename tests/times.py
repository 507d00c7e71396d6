"""Where the time of a test run goes: seconds and processor seconds of every test and fixture, for `make times`.

A pytest plugin: `pytest --times build/times/tests.json`. The workers of a distributed run attach what
they measured to their reports; the process that collects the reports writes the file, and keeps the one before it as
tests.previous.json.
"""

import json
import os
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_KEY = "times"


def _processor_seconds() -> float:
    """What this process and the ended processes that it started have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class Times:
    """Collects what each phase of each test took."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._begun = time.time()
        self._tests: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        self._fixtures: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
        self._pending: list[tuple[str, float, float]] = []  # fixtures since the last report: seconds, processor seconds
        self._used = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Measures a fixture without those that it asks for, which are set up before."""
        begun, used = time.perf_counter(), _processor_seconds()
        try:
            return (yield)
        finally:
            place = f"{fixturedef.baseid or 'pytest'}::{fixturedef.argname}"
            self._pending.append((place, time.perf_counter() - begun, _processor_seconds() - used))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """Attaches to the report of a phase what it used."""
        report = yield
        now = _processor_seconds()
        report.user_properties.append((_KEY, [now - self._used, self._pending]))
        self._used, self._pending = now, []
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._used = _processor_seconds()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Adds a report of this process or of a worker."""
        cpu, fixtures = next((value for key, value in report.user_properties[::-1] if key == _KEY), (0.0, []))
        test = self._tests[report.nodeid]
        test[0] += report.duration
        test[1] += cpu
        for place, seconds, used in fixtures:
            entry = self._fixtures[place]
            entry[0] += seconds
            entry[1] += used
            entry[2] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Writes the record, unless this is a worker, whose reports go elsewhere."""
        if hasattr(session.config, "workerinput") or not self._tests:
            return
        record = {
            "began": round(self._begun),
            "wall": round(time.time() - self._begun, 1),
            "tests": _rounded(self._tests),
            "fixtures": _rounded(self._fixtures),
        }
        self._record.parent.mkdir(parents=True, exist_ok=True)
        if self._record.exists():
            self._record.replace(self._record.with_suffix(".previous.json"))
        self._record.write_text(json.dumps(record, indent=0) + "\n", encoding="utf-8")


def _rounded(entries: dict[str, list[float]]) -> dict[str, list[float]]:
    return {name: [round(value, 3) for value in values] for name, values in sorted(entries.items())}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --times."""
    parser.addoption("--times", type=Path, metavar="FILE", help="write what each test and fixture took into this file")


def pytest_configure(config: pytest.Config) -> None:
    """Measures if --times asks for it."""
    path = config.getoption("--times")
    if path is not None:
        config.pluginmanager.register(Times(path), "diopigen-times")
