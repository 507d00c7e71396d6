"""The list of sources that CMake compiles for one vendor."""

from collections.abc import Iterable
from dataclasses import dataclass

from diopigen.model.program import Program
from diopigen.model.vendor import Origin
from diopigen.targets.output import Output, Render


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesView:
    generated: tuple[str, ...]  # ex) ("adaptor/adaptor_unary.cpp",), relative to the list
    aten: tuple[str, ...]
    portable: tuple[str, ...]  # ex) ("runtime_cpp/kernels/matmul.cpp",), relative to the root


def sources(program: Program, others: Iterable[Output], render: Render) -> Output:
    """The list for the C++ files among `others` and the portable kernels that the vendor's plans use."""
    paths = sorted(output.path for output in others if output.path.endswith(".cpp"))
    portable = {p.implementation.source for p in program.plans if p.implementation.origin is Origin.PORTABLE}
    view = SourcesView(
        generated=tuple(path for path in paths if not path.startswith("aten/")),
        aten=tuple(path for path in paths if path.startswith("aten/")),
        portable=tuple(sorted(portable)),
    )
    return Output(path="sources.cmake", text=render("sources/sources.cmake.j2", view))
