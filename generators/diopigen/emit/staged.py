"""The contract's headers as they follow from a program, in the cache, for clang to read before they are written."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from diopigen.atomic import write_text
from diopigen.model.program import Program
from diopigen.project import Project
from diopigen.targets import adaptor, header
from diopigen.targets.output import Output, Part, Render, renderer


def staged_headers(program: Program, project: Project, vendors: Iterable[str] = ()) -> Path:
    """The include folder of all headers.

    What the sources of `vendors` define is not known yet, so their declarations are those of all functions.
    """
    render = renderer(project.templates)
    declared = (adaptor.declarations(vendor, program.functions, render) for vendor in vendors)
    beside = (replace(output, path=f"include/{output.path}") for output in declared)
    return _staged((*header.outputs(program, render), *header.own_output(program, render), *beside), project)


def staged_types(program: Program, project: Project) -> Path:
    """The same folder, of which only the headers that no operator is declared in are brought up to date."""
    outputs = header.outputs(replace(program, functions=()), renderer(project.templates))
    return _staged((output for output in outputs if output.path != header.ABI), project)


def runtime_text(program: Program, render: Render) -> str:
    """All headers but for functions of operators, one after another."""
    return "".join(output.text for output in header.outputs(replace(program, functions=()), render))


def types_text(program: Program, render: Render) -> str:
    """What stands in the headers before functions: enums, structs and types."""
    bare = replace(program.runtime, functions=(), function_types=(), tables=())
    lines = runtime_text(replace(program, runtime=bare), render).splitlines()
    return "\n".join(line for line in lines if not line.startswith("#include <diopi/"))


def _staged(outputs: Iterable[Output | Part], project: Project) -> Path:
    """A cache may serve several checkouts at once, so each has a folder of its own."""
    folder = project.cache / "contract" / hashlib.sha256(str(project.root).encode()).hexdigest()[:8]
    for output in outputs:
        path = folder / output.path
        if not path.is_file() or path.read_text(encoding="utf-8") != output.text:
            write_text(path, output.text)
    return folder / "include"
