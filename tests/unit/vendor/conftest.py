"""A small contract for the vendor side: ten ops that cover every role and layout."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.program import Program
from diopigen.model.runtime import Runtime
from diopigen.model.vendor import Implementation, Origin, Vendor
from diopigen.passes.bind import bind_ops
from diopigen.passes.bind_runtime import bind_dtypes
from diopigen.passes.expand import expand
from diopigen.passes.plan_vendor import plan_vendor
from diopigen.source.convert_config import read_convert_config

ROOT = Path(__file__).resolve().parents[3]
OPS = Path(__file__).parent / "ops"
NOWHERE = Span(path="vendor.yaml", line=1, column=1)

Planned = Callable[..., tuple[Program, Diagnostics]]


@pytest.fixture(scope="session")
def contract() -> Program:
    """The ops of ops/*.yaml, expanded; no vendor."""
    return small_contract()


def small_contract() -> Program:
    diagnostics = Diagnostics()
    dtypes = bind_dtypes(ROOT / "schemas/dtypes.yaml", "schemas/dtypes.yaml", diagnostics)
    assert dtypes is not None
    runtime = Runtime(
        version=(1, 0, 0), enums=(), functions=(), function_types=(), device_version=1, device_entries=()
    )
    ops = bind_ops(OPS, OPS, dtypes, diagnostics)
    program = expand(Program(dtypes=dtypes, runtime=runtime, ops=ops), diagnostics)
    assert diagnostics.found == []
    return program


def with_vendor(
    program: Program, config: str, folder: Path, absent: tuple[str, ...] = ()
) -> tuple[Program, Diagnostics]:
    """The program planned for a vendor that implements everything but `absent`, with this convert_config.yaml."""
    path = folder / "convert_config.yaml"
    path.write_text(config, encoding="utf-8")
    diagnostics = Diagnostics()
    rules = read_convert_config(path, "convert_config.yaml", program.functions, program.dtypes, diagnostics)
    vendor = Vendor(
        name="recorder",
        doc="Records what reaches it.",
        base=None,
        rules=rules,
        implementations=tuple(
            Implementation(
                symbol=function.symbol,
                origin=Origin.VENDOR,
                namespace="impl::recorder",
                source="vendors/recorder/functions/all.cpp",
                span=NOWHERE,
            )
            for function in program.functions
            if function.symbol not in absent
        ),
        sources=(),
        span=NOWHERE,
    )
    return plan_vendor(replace(program, vendor=vendor), diagnostics), diagnostics


@pytest.fixture
def planned(contract: Program, tmp_path: Path) -> Planned:
    """`planned(config)`: the contract planned for a vendor with this configuration."""

    def plan(config: str, absent: tuple[str, ...] = ()) -> tuple[Program, Diagnostics]:
        return with_vendor(contract, config, tmp_path, absent)

    return plan
