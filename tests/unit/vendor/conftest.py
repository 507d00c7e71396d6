"""Fixtures of the vendor side."""

from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from tests.unit.vendor.small_project import small_contract, with_vendor

Planned = Callable[..., tuple[Program, Diagnostics]]


@pytest.fixture(scope="session")
def contract() -> Program:
    """The ops of ops/*.yaml, expanded; no vendor."""
    return small_contract()


@pytest.fixture
def planned(contract: Program, tmp_path: Path) -> Planned:
    """`planned(config)`: the contract planned for a vendor with this configuration."""

    def plan(config: str, absent: tuple[str, ...] = ()) -> tuple[Program, Diagnostics]:
        return with_vendor(contract, config, tmp_path, absent)

    return plan
