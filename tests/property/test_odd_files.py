"""No file, however mangled, makes the generator fall over; the deep step `files` goes on for an hour."""

from pathlib import Path

import pytest

from tests.property.odd_files import Fuzzer

FIRST, COUNT = 1000, 24


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Fuzzer:
    return Fuzzer(tmp_path_factory.mktemp("odd") / "project")


def test_mangled_files_are_findings(fuzzer: Fuzzer) -> None:
    faults = [fault for seed in range(FIRST, FIRST + COUNT) if (fault := fuzzer.fault(seed)) is not None]
    assert not faults, "\n".join(faults)


def test_a_fault_is_told_with_its_seed(fuzzer: Fuzzer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> tuple[int, str]:
        raise ZeroDivisionError("of a test")

    monkeypatch.setattr("tests.property.odd_files.called", broken)
    fault = fuzzer.fault(FIRST)
    assert fault is not None and fault.startswith(f"seed {FIRST}: ") and fault.endswith("ZeroDivisionError: of a test")
    Path(fault.partition(" as ")[2].partition(": ")[0]).unlink()
