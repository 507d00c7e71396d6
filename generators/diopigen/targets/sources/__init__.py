"""The lists of sources that CMake compiles: for one vendor, and for PyTorch's wrappers."""

from collections.abc import Iterable
from dataclasses import dataclass

from diopigen.model.program import Program
from diopigen.model.vendor import Base, Implementation, Origin
from diopigen.targets.output import Output, Render

_WRITTEN = (Origin.VENDOR, Origin.EXPORTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseView:
    """What is compiled of another vendor."""

    name: str  # e.g. "ascend"
    sources: tuple[str, ...]  # e.g. ("${CMAKE_SOURCE_DIR}/vendors/ascend/functions/add.cpp",)
    include_dirs: tuple[str, ...]
    defines: tuple[str, ...]  # e.g. ("CHIP_VERSION=2",)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperSourcesView:
    generated: tuple[str, ...]  # e.g. ("aten/operators_0.cpp",), relative to the list
    left_out: tuple[str, ...]  # e.g. ("runtime_cpp/torch/derived/padding.cpp",), where a generated file takes its place


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesView:
    generated: tuple[str, ...]  # e.g. ("adaptor/adaptor_unary.cpp",), relative to the list
    own: tuple[str, ...]  # e.g. ("${DIOPI_ROOT}/vendors/droplet/gemm.cpp",), with functions that the adaptor calls
    portable: tuple[str, ...]  # e.g. ("${DIOPI_ROOT}/runtime_cpp/kernels/linear_algebra/matmul.cpp",)
    bases: tuple[BaseView, ...]  # those that serve a function


def sources(program: Program, others: Iterable[Output], render: Render) -> Output:
    """The list for the C++ files among `others` and the portable kernels that the vendor's plans use."""
    served = [plan.implementation for plan in program.plans]
    bases = {base.name: base for base in (program.vendor.bases if program.vendor is not None else ())}
    serving = {i.name.partition("::")[0] for i in served if i.origin in (Origin.BASE, Origin.EXPORTED)}
    view = SourcesView(
        generated=_cpp_paths(others),
        own=tuple(map(_from_root, _sources(i for i in served if i.origin in _WRITTEN and i.name not in bases))),
        portable=tuple(map(_from_root, _sources(i for i in served if i.origin is Origin.PORTABLE))),
        bases=tuple(_base(base) for name, base in bases.items() if name in serving),
    )
    return Output(path="sources.cmake", text=render("sources/sources.cmake.j2", view))


def wrapper_sources(program: Program, others: Iterable[Output], render: Render) -> Output:
    """The list for the wrappers among `others`, and of the hand-written files that do not fit the installed torch."""
    view = WrapperSourcesView(generated=_cpp_paths(others), left_out=tuple(file.path for file in program.rewritten))
    return Output(path="sources.cmake", text=render("sources/wrappers.cmake.j2", view))


def _cpp_paths(others: Iterable[Output]) -> tuple[str, ...]:
    return tuple(sorted(output.path for output in others if output.path.endswith(".cpp")))


def _sources(implementations: Iterable[Implementation]) -> tuple[str, ...]:
    return tuple(sorted({i.source for i in implementations}))


def _base(base: Base) -> BaseView:
    return BaseView(
        name=base.name,
        sources=tuple(map(_from_root, base.sources)),
        include_dirs=(*map(_from_root, base.include_dirs), f"${{CMAKE_CURRENT_LIST_DIR}}/declarations/{base.name}"),
        defines=base.defines,
    )


def _from_root(path: str) -> str:
    return path if path.startswith("/") else f"${{DIOPI_ROOT}}/{path}"
