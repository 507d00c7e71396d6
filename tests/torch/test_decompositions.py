"""What torch decomposes reaches only operators that have a wrapper, and gives the CPU's numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.project import find_project
from tests.torch.decompositions import DECOMPOSITIONS


@pytest.fixture(scope="module")
def bound() -> set[str]:
    project, diagnostics = find_project(Path(__file__)), Diagnostics()
    return {b.overload.name for b in pipeline.run(project, diagnostics, pipeline.Stage.ATEN).bindings}


def positive(torch: Any, device: str) -> Callable[..., Any]:
    """Makes tensors with the same positive numbers at each call of the same shape, on `device`."""

    def tensor(*shape: int) -> Any:
        generator = torch.Generator().manual_seed(len(shape) * 100 + sum(shape))
        return (torch.rand(shape, generator=generator) + 0.25).to(device)

    return tensor


@pytest.mark.parametrize("overload", DECOMPOSITIONS)
def test_a_decomposition_reaches_wrappers_only(torch: Any, bound: set[str], overload: str) -> None:
    call = DECOMPOSITIONS[overload]
    torch.dipu.fallback.reset()
    found = call(torch, positive(torch, "dipu"))
    # a wrapper whose function the vendor lacks falls back; an operator without a wrapper must not be reached
    reached = {row.operator.removeprefix("aten::") for row in torch.dipu.fallback.report()}
    assert reached <= bound, reached - bound
    torch.testing.assert_close(
        torch.utils._pytree.tree_map(lambda each: each.cpu(), found), call(torch, positive(torch, "cpu"))
    )
