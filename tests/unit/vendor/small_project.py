"""A small contract for the vendor side: an op for every way in which a tensor can reach a function."""

import itertools
from dataclasses import replace
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin, Vendor
from diopigen.passes.contract.bind_ops import bind_ops
from diopigen.passes.contract.bind_runtime import bind_dtypes, bind_runtime
from diopigen.passes.contract.expand import expand
from diopigen.passes.vendor.bind import bind_vendor
from diopigen.passes.vendor.plan import plan_vendor
from diopigen.project import Project
from diopigen.source.vendor.convert_config import read_convert_config
from diopigen.targets import header
from diopigen.targets.output import renderer

ROOT = Path(__file__).resolve().parents[3]
OPS = Path(__file__).parent / "ops"
NOWHERE = Span(path="vendor.yaml", line=1, column=1)


def small_contract(*folders: Path) -> Program:
    """The ops of `folders`, else of ops/*.yaml, expanded; no vendor."""
    diagnostics = Diagnostics()
    dtypes = bind_dtypes(Project(root=ROOT), diagnostics)
    assert dtypes is not None
    runtime = bind_runtime(ROOT / "schemas/runtime.yaml", "schemas/runtime.yaml", dtypes, diagnostics)
    assert runtime is not None
    found = (bind_ops(folder, lambda path: path.name, dtypes, diagnostics) for folder in folders or (OPS,))
    ops = tuple(itertools.chain.from_iterable(found))
    program = expand(Program(dtypes=dtypes, runtime=runtime, ops=ops), diagnostics)
    assert diagnostics.found == []
    return program


def with_vendor(
    program: Program,
    config: str,
    folder: Path,
    absent: tuple[str, ...] = (),
    without_patterns: tuple[str, ...] = (),
) -> tuple[Program, Diagnostics]:
    """The program planned for a vendor that implements everything but `absent`, with this convert_config.yaml."""
    path = folder / "convert_config.yaml"
    path.write_text(config, encoding="utf-8")
    diagnostics = Diagnostics()
    rules = read_convert_config(path, "convert_config.yaml", program.functions, program.dtypes, diagnostics)
    vendor = Vendor(
        name="recorder",
        doc="Records what reaches it.",
        base=(),
        bases=(),
        generate=None,
        config="convert_config.yaml",
        rules=rules,
        without_patterns=without_patterns,
        implementations=tuple(
            Implementation(
                symbol=function.symbol,
                origin=Origin.VENDOR,
                name="recorder",
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


def with_folders(program: Program, vendor: str, files: dict[str, str], root: Path) -> tuple[Program, Diagnostics]:
    """The program planned for `vendor`, whose folder and those of its bases stand in `root`/vendors."""
    for name, text in files.items():
        path = root / "vendors" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    diagnostics = Diagnostics()
    bound = bind_vendor(Project(root=root), vendor, program, list, diagnostics)
    return (program if bound is None else plan_vendor(replace(program, vendor=bound), diagnostics)), diagnostics


def contract_headers(folder: Path, program: Program | None = None) -> Path:
    """Writes the headers of the small contract, or of `program`; gives the directory below `folder` to include from."""
    for output in header.outputs(program or small_contract(), renderer(ROOT / "templates")):
        path = folder / output.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output.text, encoding="utf-8")
    return folder / "include"
