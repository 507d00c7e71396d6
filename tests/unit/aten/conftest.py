"""A small project whose ops are bound to the installed torch."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from diopigen import pipeline
from diopigen.aten.catalog import Catalog, load
from diopigen.diagnostics import Diagnostics, render_human
from diopigen.model.program import Program
from diopigen.passes.aten.bind import bind_aten
from diopigen.project import Project

ADD = """\
add:
  doc: Adds `other`, scaled by `alpha`, to `input`.
  args: {input: Tensor<T>, other: "Tensor<U> | Scalar", alpha: Scalar = 1}
  out: Tensor<promote(T, U)> like broadcast(input, other)
  where: {T: any, U: any}
  variants: [out, inplace]
  kernel: input + alpha * other
  aten: add
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What binding one schema file gave."""

    program: Program
    diagnostics: Diagnostics
    root: Path

    def routes(self, overload: str) -> list[str]:
        """e.g. ["diopiAddScalar(other on the CPU)", "diopiAdd"]"""
        binding = next(b for b in self.program.bindings if b.overload.name == overload)
        return [
            r.symbol + (f"({r.scalar_tensor} on the CPU)" if r.scalar_tensor is not None else "")
            for r in binding.routes
        ]

    def overloads(self) -> set[str]:
        return {b.overload.name for b in self.program.bindings}

    def text(self) -> list[str]:
        return list(render_human(self.diagnostics, self.root))


@pytest.fixture(scope="session")
def catalog(checkout: Project) -> Catalog:
    return load(checkout.cache, Diagnostics())


@pytest.fixture
def bound(miniature: Callable[..., Project], catalog: Catalog) -> Callable[[str], Bound]:
    def bind(schema: str) -> Bound:
        project = miniature({"a.yaml": schema})
        diagnostics = Diagnostics()
        program = pipeline.run(project, diagnostics)
        assert program is not None and not diagnostics.failed, list(render_human(diagnostics, project.root))
        drift = pipeline.Context(project=project, diagnostics=diagnostics).drift
        return Bound(program=bind_aten(program, catalog, drift), diagnostics=diagnostics, root=project.root)

    return bind
