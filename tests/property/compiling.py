"""Entries of schemas/ops: what is found wrong with each, and what compilers say to all that the others give."""

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics, Severity, render_human
from diopigen.model.composition import Composition
from diopigen.model.op import Function
from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin, Vendor
from diopigen.passes.composition.derive import compositions
from diopigen.passes.composition.match_call import contract_of
from diopigen.passes.vendor.plan import plan_vendor
from diopigen.project import Project
from diopigen.source.vendor.convert_config import read_convert_config
from diopigen.targets import adaptor, compiler, composites, conformance, header, kernels
from diopigen.targets.output import Output, renderer
from tests.compile.test_adaptor import LOSSY
from tests.compile.test_headers import COMPILERS, STANDARDS, STRICTLY

# What drawn entries are composed of, as the contract has them.
BASIS = (
    "fill",
    "copy",
    "cast_dtype",
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "exp",
    "sigmoid",
    "where",
    "eq",
    "lt",
    "gt",
    "maximum",
    "minimum",
    "bitwise_not",
    "bitwise_and",
    "logical_and",
    "logical_not",
    "sum",
    "floor",
)
_SOURCE_STANDARD = "c++17"  # of what a vendor compiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Entries that were read together, each in a file of its own."""

    program: Program  # of those that are clean
    findings: Mapping[str, str]  # by topic, what was found in the others


def basis(checkout: Project) -> str:
    """The entries of the contract that others are composed of, as far as their functions tell."""
    found = {}
    for path in sorted((checkout.schemas / "ops").glob("*.yaml")):
        found |= yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    told = ("doc", "name", "names", "args", "out", "where", "variants", "order", "c", "kernel")
    return yaml.safe_dump(
        {name: {key: found[name][key] for key in told if key in found[name]} for name in BASIS}, sort_keys=False
    )


def read(project: Project, entries: Mapping[str, str], checkout: Project) -> Batch:
    """Reads the entries, by topic, and leaves out those that have findings."""
    folder = project.schemas / "ops"
    for path in folder.glob("*.yaml"):
        path.unlink()
    (folder / "basis.yaml").write_text(basis(checkout), encoding="utf-8")
    for topic, text in entries.items():
        (folder / f"{topic}.yaml").write_text(text, encoding="utf-8")
    findings: dict[str, str] = {}
    while True:
        diagnostics = Diagnostics()
        pipeline.run(project, diagnostics, pipeline.Stage.CASES)
        found = [d for d in diagnostics.ordered() if d.severity is not Severity.NOTE]
        if not found:
            return Batch(program=_in_one_file(project, entries.keys() - findings.keys()), findings=findings)
        shown = "\n".join(render_human(Diagnostics(found=found), project.root))
        for finding in found:
            topic = Path(finding.span.path).stem
            assert topic in entries, shown
            findings[topic] = "\n".join(
                render_human(Diagnostics(found=[d for d in found if Path(d.span.path).stem == topic]), project.root)
            )
        for topic in {Path(finding.span.path).stem for finding in found}:
            (folder / f"{topic}.yaml").unlink()


def _in_one_file(project: Project, topics: Iterable[str]) -> Program:
    """What is generated is one source of each kind, which costs its headers once."""
    files = [project.schemas / "ops" / f"{topic}.yaml" for topic in sorted(topics)]
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    for path in files:
        path.unlink()
    (project.schemas / "ops" / "entries.yaml").write_text(text, encoding="utf-8")
    program = pipeline.run(project, Diagnostics())
    assert program is not None
    return program


def sources(batch: Batch, project: Project) -> Iterator[Output]:
    """All that is generated for a vendor that converts each tensor, composes what can be, and has kernels."""
    render = renderer(project.templates)
    yield from header.outputs(batch.program, render)
    program = _planned(batch.program, project)
    yield from kernels.outputs(program, render)
    yield from adaptor.outputs(program, render)
    yield from conformance.outputs(pipeline.run(project, Diagnostics(), pipeline.Stage.CASES, program=program), render)
    yield from compiler.outputs(program, render)
    for way, composed in enumerate(_ways(batch.program)):
        for output in composites.outputs(replace(program, compositions=composed), render):
            text = output.text.replace("namespace impl::composite", f"namespace impl::composite_{way}")
            yield Output(path=output.path.replace("composites/", f"composites_{way}/"), text=text)


def _planned(program: Program, project: Project) -> Program:
    config = project.root / "lossy.yaml"
    config.write_text(LOSSY, encoding="utf-8")
    found = Diagnostics()
    rules = read_convert_config(config, config.name, program.functions, program.dtypes, found)
    span = program.ops[0].span
    vendor = Vendor(
        name="card",
        doc="",
        base=("portable",),
        bases=(),
        generate=None,
        config=config.name,
        rules=rules,
        without_patterns=(),
        implementations=tuple(_implemented(f) for f in program.functions if f.kernel is None),
        sources=(),
        span=span,
    )
    return plan_vendor(replace(program, vendor=vendor), found)


def _implemented(function: Function) -> Implementation:
    return Implementation(
        symbol=function.symbol, origin=Origin.VENDOR, name="card", namespace="impl::card", source="", span=function.span
    )


def _ways(program: Program) -> Iterator[tuple[Composition, ...]]:
    """One composition of each function, then another one of those that have more."""
    contract = contract_of(program.functions)
    found = [tuple(compositions(f, contract, program.dtypes)) for f in program.functions if f.op not in BASIS]
    for way in range(max(map(len, found), default=0)):
        yield tuple(several[way] for several in found if len(several) > way)


def complaints(batch: Batch, project: Project, checkout: Project) -> str:
    """What the compilers say to the headers under each standard, and to the sources under that of vendors."""
    folder = project.root / "compiled"
    shutil.rmtree(folder, ignore_errors=True)
    whole = []
    for output in sources(batch, project):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
        if path.stem.endswith("_entries"):
            whole.append(path)
    include = folder / "include"
    said = []
    for command in COMPILERS:
        for language, standard in STANDARDS:
            strictly = STRICTLY if language == "c" else STRICTLY[:-1]
            said.append(
                _said(
                    [command, "-x", language, f"-std={standard}", *strictly, f"-I{include}"],
                    "#include <diopi/functions.h>\n",
                )
            )
        runtime = [f"-I{path}" for path in (include, checkout.runtime, checkout.runtime / "kernels")]
        text = "".join(("#include <diopi/functions.h>\n", *(f'#include "{path}"\n' for path in reversed(whole))))
        said.append(_said([command, "-x", "c++", f"-std={_SOURCE_STANDARD}", *STRICTLY[:-1], *runtime], text))
    return "\n".join(text for text in said if text)


def _said(command: Sequence[str], text: str) -> str:
    done = subprocess.run([*command, "-fsyntax-only", "-"], input=text, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode or done.stderr else ""
