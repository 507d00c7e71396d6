"""The lab, built once for all of its tests, under the sanitizers."""

from pathlib import Path

import pytest

from tests.cpp.adaptor.lab.program import Adaptor, Parts, all_parts, live_lab


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return all_parts(tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="session")
def lab(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with live rules."""
    return live_lab(parts, Adaptor(), tmp_path_factory.mktemp("lab"))
