"""Fixtures of the vendor side."""

from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from tests.unit.vendor.small_project import contract_headers, small_contract, with_folders, with_vendor

Planned = Callable[..., tuple[Program, Diagnostics]]
Folders = Callable[[str, dict[str, str]], tuple[Program, Diagnostics]]


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


@pytest.fixture
def folders(contract: Program, tmp_path: Path) -> Folders:
    """`folders("chip", {"chip/vendor.yaml": text})`: the contract planned for `chip`, of these files of vendors/."""
    contract_headers(tmp_path / "generated")

    def plan(vendor: str, files: dict[str, str]) -> tuple[Program, Diagnostics]:
        return with_folders(contract, vendor, files, tmp_path)

    return plan
