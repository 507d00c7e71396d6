"""The benchmarks' programs compile without a warning: a figure can be taken at any time."""

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PROGRAMS = {"wrapper_overhead": True, "adaptor_overhead": False}  # and whether it links torch


def test_every_program_is_known() -> None:
    assert {path.stem for path in (BENCHMARKS / "programs").glob("*.cpp")} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_compiles(libraries: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    from adaptor_overhead import SOURCES
    from setting import Setting

    others = [f"runtime_cpp/adaptor/{each}" for each in SOURCES] if name == "adaptor_overhead" else []
    assert Setting("droplet", libraries.parent).program(name, *others, with_torch=PROGRAMS[name]).exists()
