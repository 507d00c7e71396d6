"""Every spelling of every pattern: it is found, it is as many launches as it says, and gives what float64 gives."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dicp.patterns import Pattern, pattern_table
from diopigen.vocabulary.torch_dtypes import TORCH_DTYPES
from tests.processes import ROOT
from tests.torch.dicp.spellings import Variant, variants

TOLERANCE = {"float32": 2e-5, "float16": 1e-2, "bfloat16": 8e-2, "float64": 1e-10}


def table() -> dict[str, Pattern]:
    folder = Path(os.environ.get("DIPU_LIBRARY_DIR", ROOT / "build" / "droplet" / "lib"))
    path = folder / "compiler" / "patterns.json"
    return pattern_table(path).every if path.exists() else {}


PATTERNS = table()
VARIANTS = [variant for pattern in PATTERNS.values() for variant in variants(pattern)]
SPELLINGS = [next(v for v in VARIANTS if v.pattern is pattern) for pattern in PATTERNS.values()]


@pytest.fixture
def every(monkeypatch: pytest.MonkeyPatch, compiler: Any) -> None:
    """Patterns that pay for no portable kernel are on, too."""
    monkeypatch.setenv("DICP_PATTERNS", "all")


def arguments(torch: Any, variant: Variant, row: dict[str, Any], dtype: str) -> dict[str, Any]:
    """Tensors and numbers of an example, on the CPU."""
    torch.manual_seed(0)
    made: dict[str, Any] = {}
    for name in variant.inputs:
        given = variant.pattern.inputs[name]
        if given.kind != "tensor":
            made[name] = row[name]
        elif given.element in TORCH_DTYPES:
            made[name] = torch.randint(2, row[name]).to(TORCH_DTYPES[given.element])
        else:
            made[name] = torch.randn(row[name]).to(getattr(torch, dtype))
    return made


def computed(
    torch: Any, variant: Variant, function: Callable[..., Any], given: dict[str, Any], place: Any
) -> list[Any]:
    """The result and the gradients of what has some; `place` is a device or a dtype that everything is computed in."""
    placed, leaves = dict(given), []
    for name, value in given.items():
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or place == "dipu"):
            placed[name] = value.to(place)
            if value.is_floating_point() and name not in variant.pattern.without_gradient:
                leaves.append(placed[name].requires_grad_())
    out = function(**placed)
    torch.manual_seed(1)
    weights = torch.randn(out.shape).to(out.device, out.dtype)
    return [out, *torch.autograd.grad(out, leaves, weights)]


def agrees(torch: Any, found: list[Any], exact: list[Any], tolerance: float) -> None:
    for one, other in zip(found, exact, strict=True):
        scale = max(1.0, float(other.detach().abs().max()))
        assert float((one.detach().cpu().double() - other.detach()).abs().max()) <= tolerance * scale


def check(torch: Any, compiled: Any, reports: Any, variant: Variant, row: Any, dtype: str, **options: Any) -> None:
    given = arguments(torch, variant, row, dtype)
    found = computed(torch, variant, compiled(variant.function(torch), **options), given, "dipu")
    exact = computed(torch, variant, variant.function(torch, wide=True), given, torch.float64)
    agrees(torch, found, exact, TOLERANCE[dtype])
    pattern = variant.pattern
    applied = [one.pattern for one in reports()[0].patterns]
    assert applied == ([] if pattern.becomes is None else [pattern.name]), reports()[0].text()


@pytest.mark.usefixtures("every")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_spelling(torch: Any, compiled: Any, reports: Any, variant: Variant) -> None:
    check(torch, compiled, reports, variant, variant.examples[0], "float32")
    forward, backward = reports()
    assert len(forward.program.instructions) == variant.pattern.forward, forward.text()
    assert len(backward.program.instructions) == variant.pattern.backward, backward.text()


HALF = pytest.param("float16", marks=pytest.mark.deep("matrix", "the other element types, one of 16 bits among them"))


@pytest.mark.usefixtures("every")
@pytest.mark.parametrize("variant", SPELLINGS, ids=lambda variant: variant.pattern.name)
@pytest.mark.parametrize("dtype", [HALF, "bfloat16", "float64"])
def test_every_dtype_and_example(torch: Any, compiled: Any, reports: Any, variant: Variant, dtype: str) -> None:
    for row in variant.examples:
        torch.compiler.reset()
        check(torch, compiled, reports, variant, row, dtype)


@pytest.mark.usefixtures("every")
@pytest.mark.parametrize("variant", SPELLINGS, ids=lambda variant: variant.pattern.name)
def test_sizes_that_change(torch: Any, compiled: Any, reports: Any, variant: Variant) -> None:
    """The first dimension is a symbol; another length compiles nothing."""
    row = variant.examples[0]
    length = row[variant.inputs[0]][0]
    batched = [name for name in variant.inputs if isinstance(row[name], list) and row[name][0] == length]
    run = compiled(variant.function(torch), dynamic=None)

    def marked(**given: Any) -> Any:
        for name in batched:
            torch._dynamo.mark_dynamic(given[name], 0)
        return run(**given)

    for more in range(2):
        sizes = {**row, **{name: [length + more, *row[name][1:]] for name in batched}}
        given = arguments(torch, variant, sizes, "float32")
        found = computed(torch, variant, marked, given, "dipu")
        exact = computed(torch, variant, variant.function(torch, wide=True), given, torch.float64)
        agrees(torch, found, exact, TOLERANCE["float32"])
    forward, *_ = reports()
    assert [one.pattern for one in forward.patterns] == [variant.pattern.name] * (variant.pattern.becomes is not None)
    assert len(reports()) == 2, [report.text() for report in reports()]
