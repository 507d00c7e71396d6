"""Prints what the portable kernels come to: lines of code by family and by function, and the libraries they rest on.

A function is one of the contract; the functions of a family, a folder, share its lines evenly, and all share the
folders without any, e.g. `core`. Blank lines and lines that are only a comment do not count. A chip's runtime and
device table are no kernels.
"""

import re
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.model.vendor import FunctionPlan, Origin
from diopigen.project import Project
from diopigen.targets import kernels
from diopigen.targets.output import renderer
from tools.kernel_calls import Calls
from tools.schema_figures import percentile

ROOT = Path(__file__).resolve().parent.parent
VENDORS = ("droplet", "cuda")
NO_KERNELS = (
    "device.cpp",
    "collectives.cpp",
    "runtime",
    "fabric",
    "profiles",
)  # what a vendor's folder holds beside kernels
# A library by the names of its functions.
LIBRARIES = {
    "OpenBLAS": r"scipy_cblas_\w+",
    "LAPACK": r"scipy_LAPACKE_\w+",
    "cuBLAS": r"cublas\w+",
    "cuDNN": r"cudnn\w+",
    "cuSOLVER": r"cusolver\w+",
    "CUB": "cub",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One folder of portable kernels with functions of the contract."""

    name: str  # e.g. "pooling"
    lines: int
    functions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    functions: int  # of the contract
    families: tuple[Family, ...]  # most lines first
    core: int  # lines of what families share, launchers included
    vendors: tuple[tuple[str, int], ...]  # e.g. (("droplet", 130), ...): lines of their own
    kernel_lines: int  # `kernel:` lines of the schemas
    generated: int  # lines of C++ that follow from these

    @property
    def written(self) -> int:
        """Handwritten lines of kernels."""
        return sum(f.lines for f in self.families) + self.core + sum(lines for _, lines in self.vendors)

    @property
    def by_function(self) -> tuple[float, ...]:
        """Of each function with a portable source, its share of its family."""
        return tuple(f.lines / f.functions for f in self.families for _ in range(f.functions))


def lines_of(text: str) -> int:
    """The lines of C++ that are neither blank nor only a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("//"))


def figures(program: Program, project: Project, vendors: Iterable[str]) -> Figures:
    """Counts the kernels of the project; `program` is bound to a vendor with the portable base and none of its own."""
    folder = project.root / "runtime_cpp" / "kernels"
    served: dict[str, int] = {}
    for plan in program.plans:
        if plan.implementation.origin is Origin.PORTABLE:
            name = Path(plan.implementation.source).parent.name
            served[name] = served.get(name, 0) + 1
    families = [Family(name=name, lines=_count(_sources(folder / name)), functions=n) for name, n in served.items()]
    shared = [path for path in _sources(folder) if path.parent.name not in served]
    outputs = kernels.outputs(program, renderer(project.templates))
    return Figures(
        functions=len(program.functions),
        families=tuple(sorted(families, key=lambda family: (-family.lines, family.name))),
        core=_count(shared),
        vendors=tuple((vendor, _count(vendor_sources(project, vendor))) for vendor in vendors),
        kernel_lines=_kernel_lines(project),
        generated=sum(lines_of(output.text) for output in outputs),
    )


def libraries(program: Program, project: Project, vendor: str) -> dict[str, tuple[str, ...]]:
    """The functions of a vendor that rest on each library, e.g. {"cuBLAS": ("diopiAddmm", ...)}."""
    calls = Calls(project.root / "runtime_cpp" / "kernels", vendor_sources(project, vendor))
    sources = {plan.symbol: project.root / plan.implementation.source for plan in program.plans if _is_written(plan)}
    found: dict[str, list[str]] = {}
    for symbol in sources:
        reached = calls.reached(symbol, sources)
        for library, names in LIBRARIES.items():
            if any(re.fullmatch(names, name) for name in reached):
                found.setdefault(library, []).append(symbol)
    return {library: tuple(sorted(symbols)) for library, symbols in sorted(found.items())}


def vendor_sources(project: Project, vendor: str) -> tuple[Path, ...]:
    """The kernels in a vendor's folder: what it launches, multiplies and computes with."""
    folder = project.vendors / vendor
    found = _sources(folder)
    return tuple(path for path in found if path.relative_to(folder).parts[0] not in NO_KERNELS)


def _is_written(plan: FunctionPlan) -> bool:
    return plan.implementation.origin in (Origin.VENDOR, Origin.BASE, Origin.PORTABLE)


def _sources(folder: Path) -> tuple[Path, ...]:
    return tuple(path for path in sorted(folder.rglob("*")) if path.suffix in (".h", ".cpp", ".cu"))


def _count(paths: Iterable[Path]) -> int:
    return sum(lines_of(path.read_text(encoding="utf-8")) for path in paths)


def _kernel_lines(project: Project) -> int:
    texts = (path.read_text(encoding="utf-8") for path in sorted((project.schemas / "ops").glob("*.yaml")))
    return sum(len(re.findall(r"(?m)^ +kernel: ", text)) for text in texts)


def main() -> int:
    """Exits with 1 if the schemas or a vendor have an error."""
    project = Project(root=ROOT)
    diagnostics = Diagnostics()
    contract = pipeline.run(project, diagnostics)
    if contract is None:
        print("the schemas have errors; diopigen lint shows them", file=sys.stderr)
        return 1
    programs = {
        vendor: pipeline.run(project, diagnostics, pipeline.Stage.VENDOR, vendor=vendor, program=contract)
        for vendor in VENDORS
    }
    print("\n".join(_report(figures(programs[VENDORS[0]], project, VENDORS))))
    for vendor, program in programs.items():
        for library, symbols in libraries(program, project, vendor).items():
            print(f"on {vendor} {len(symbols)} functions rest on {library}: {', '.join(symbols)}")
    return 0


def _report(found: Figures) -> Iterator[str]:
    values = found.by_function
    own = sum(family.lines for family in found.families)
    others = found.functions - len(values)
    each = found.written / found.functions
    yield f"{found.written} lines of kernels for {found.functions} functions: {each:.1f} each"
    yield f"{own} in the families of {len(values)} functions, {found.core} in what they share"
    yield from (f"{lines} of {vendor}" for vendor, lines in found.vendors)
    yield f"{found.generated} more are generated for {others} functions, from {found.kernel_lines} `kernel:` lines"
    median, most = statistics.median(values), percentile(values, 0.95)
    yield f"lines of a family for each of its functions: median {median:.0f}, 95th percentile {most:.0f}"
    yield from (f"  {family.name:24}{family.lines:5}{family.functions:4}" for family in found.families)


if __name__ == "__main__":
    sys.exit(main())
