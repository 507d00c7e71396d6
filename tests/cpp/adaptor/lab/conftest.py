"""The lab, built once for all of its tests."""

from pathlib import Path

import pytest

from tests.cpp.adaptor.lab.program import build


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with live rules, under the sanitizers."""
    return build(tmp_path_factory.mktemp("lab"))
