"""Kernels as devices with teams of threads run them: by packs, on a launcher that gives droplet such teams."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

LAUNCHER = Path(__file__).parents[2] / "cpp" / "kernels" / "droplet_teams.h"


@pytest.fixture
def in_teams(compiler: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The vendor's target, with the launcher of the tests."""
    from dicp.backend import backend, vendor_target

    monkeypatch.setenv("DICP_PATTERNS", "0")  # what is tested are loops
    base = vendor_target()
    flags = tuple(flag for flag in base.flags if "DIOPI_LAUNCHER_HEADER" not in flag)
    flags = (*flags, f'-DDIOPI_LAUNCHER_HEADER="{LAUNCHER}"', "-O1")
    target = replace(base, flags=flags)
    return backend("teams", lambda: target)


def rms_norm(torch: Any, x: Any, weight: Any) -> Any:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight


def log_softmax(torch: Any, x: Any, weight: Any) -> Any:
    moved = x * weight
    moved = moved - moved.amax(-1, keepdim=True)
    return moved - moved.exp().sum(-1, keepdim=True).log()


@pytest.mark.parametrize("function", [rms_norm, log_softmax])
@pytest.mark.parametrize(
    "columns", [64, 256, 4096, 37]
)  # held in registers, held, read again in each pass, without packs
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_are_folded_by_packs(
    torch: Any, in_teams: Any, reports: Any, function: Callable[..., Any], columns: int, dtype: str
) -> None:
    kind = getattr(torch, dtype)
    x, weight = torch.randn(16, columns).to(kind), torch.randn(columns).to(kind)
    run = torch.compile(lambda x, weight: function(torch, x, weight), backend=in_teams, fullgraph=True, dynamic=False)
    result = run(x.to("dipu"), weight.to("dipu")).cpu()
    exact = function(torch, x.double(), weight.double())
    tolerance = 2e-2 if dtype == "bfloat16" else 1e-5
    torch.testing.assert_close(result.double(), exact, rtol=tolerance, atol=tolerance)
    (source,) = {report.source for report in reports()}
    assert "folded_packs<float, kWidth>" in source


@pytest.mark.parametrize("columns", [64, 4096])
def test_gradients_of_rows(torch: Any, in_teams: Any, columns: int) -> None:
    x, weight = torch.randn(8, columns), torch.randn(columns)
    given = [tensor.to("dipu").requires_grad_() for tensor in (x, weight)]
    run = torch.compile(lambda x, weight: rms_norm(torch, x, weight), backend=in_teams, fullgraph=True, dynamic=False)
    run(*given).square().sum().backward()
    wanted = [tensor.double().requires_grad_() for tensor in (x, weight)]
    rms_norm(torch, *wanted).square().sum().backward()
    for mine, exact in zip(given, wanted, strict=True):
        torch.testing.assert_close(mine.grad.cpu().double(), exact.grad, rtol=1e-4, atol=1e-4)


def test_elements_by_packs(torch: Any, in_teams: Any) -> None:
    x, y = torch.randn(33, 64), torch.randn(33, 1).to(torch.bfloat16)
    run = torch.compile(lambda x, y: (x * y).exp() + x, backend=in_teams, fullgraph=True, dynamic=False)
    torch.testing.assert_close(run(x.to("dipu"), y.to("dipu")).cpu(), (x * y).exp() + x)


def test_values_of_channels_are_wider_than_the_elements(torch: Any, in_teams: Any, reports: Any) -> None:
    x, scale, shift = torch.randn(33, 64).bfloat16(), torch.randn(64), torch.randn(64)
    run = torch.compile(
        lambda x, scale, shift: (x * scale + shift).bfloat16().relu(), backend=in_teams, fullgraph=True, dynamic=False
    )
    found = run(*(tensor.to("dipu") for tensor in (x, scale, shift))).cpu()
    torch.testing.assert_close(found, (x * scale + shift).bfloat16().relu())
    (report,) = reports()
    assert "kWidth = 8" in report.source and "load_pack<float, kWidth>" in report.source
