"""Which patterns a vendor's torch.compile leaves alone, and why."""

from dataclasses import replace
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from diopigen.project import Project
from diopigen.targets.compiler.patterns import patterns
from tests.unit.vendor.small_project import with_vendor


@pytest.fixture(scope="module")
def program() -> Program:
    found = pipeline.run(Project(root=Path(__file__).parents[3]), Diagnostics())
    assert found is not None
    return found


def reasons(program: Program) -> dict[str, str]:
    return {name: each.off for name, each in patterns(program).patterns.items() if each.off is not None}


def test_a_library_of_the_vendor_is_used(program: Program, tmp_path: Path) -> None:
    planned, _ = with_vendor(program, "[]\n", tmp_path)
    assert reasons(planned) == {}


def test_loops_are_as_good_as_portable_kernels(program: Program, tmp_path: Path) -> None:
    """Only where the pattern says so; one function that is no portable kernel is enough."""
    planned, _ = with_vendor(program, "[]\n", tmp_path)

    def with_origin(symbols: tuple[str, ...]) -> Program:
        plans = tuple(
            (
                replace(plan, implementation=replace(plan.implementation, origin=Origin.PORTABLE))
                if plan.symbol.startswith(symbols)
                else plan
            )
            for plan in planned.plans
        )
        return replace(planned, plans=plans)

    reason = "the functions are portable kernels, and fused loops are as fast"
    assert reasons(with_origin(("diopi",))) == {"rms_norm": reason, "layer_norm": reason}
    assert reasons(with_origin(("diopiRMSNorm", "diopiLayerNormBackward"))) == {"rms_norm": reason}


def test_a_vendor_goes_without_what_it_names(program: Program, tmp_path: Path) -> None:
    planned, _ = with_vendor(program, "[]\n", tmp_path, without_patterns=("attention", "softmax"))
    reason = "recorder goes without it"
    assert reasons(planned) == {"attention": reason, "softmax": reason}
