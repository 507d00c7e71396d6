"""All that the site is made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from diopigen.model.aten import Binding
from diopigen.model.op import Function, Op
from diopigen.model.program import Program
from diopigen.targets.coverage import Coverage
from diopigen.targets.coverage.rows import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHelp:
    """A command of the command line, as its parser describes it."""

    name: str  # e.g. "diopigen lint"
    usage: str  # e.g. "diopigen lint [OPTIONS]"
    text: str  # paragraphs; one that begins with a line of "\b" keeps its line breaks
    options: tuple[tuple[str, str], ...]  # e.g. (("--check", "Write nothing."), ...)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramHelp:
    """A program and its commands, in sections."""

    program: CommandHelp
    sections: tuple[tuple[str, tuple[CommandHelp, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The program and what stands around it; texts are by path from the project's root."""

    program: Program  # without a vendor
    coverages: tuple[Coverage, ...]  # one for each vendor, by name
    guides: Mapping[str, str]  # e.g. {"docs/adding-an-op.md": "# Adding an op..."}; "docs/index.md" is the first page
    pictures: Mapping[str, str]  # what guides show. e.g. {"docs/parts.svg": "<svg ..."}
    programs: tuple[ProgramHelp, ...]
    sources: Mapping[str, str]  # files that have a page of their own. e.g. {"schemas/ops/add.yaml": "..."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The program by op and by symbol."""

    functions: Mapping[str, tuple[Function, ...]]  # by op
    bindings: Mapping[str, tuple[Binding, ...]]  # by op
    rows: Mapping[str, tuple[Row, ...]]  # by symbol, one for each vendor
    topics: Mapping[str, tuple[Op, ...]] = field(default_factory=dict)


def index(site: Site) -> Index:
    """The look-ups that every page needs."""
    functions: dict[str, list[Function]] = {op.name: [] for op in site.program.ops}
    bindings: dict[str, list[Binding]] = {op.name: [] for op in site.program.ops}
    topics: dict[str, list[Op]] = {}
    for function in site.program.functions:
        functions[function.op].append(function)
    for binding in site.program.bindings:
        for name in dict.fromkeys((binding.op, *(route.op for route in binding.routes))):
            bindings[name].append(binding)
    for op in site.program.ops:
        topics.setdefault(op.topic, []).append(op)
    columns = zip(*(coverage.rows for coverage in site.coverages), strict=True)
    return Index(
        functions={name: tuple(found) for name, found in functions.items()},
        bindings={name: tuple(found) for name, found in bindings.items()},
        rows={rows[0].function.symbol: rows for rows in columns},
        topics={topic: tuple(topics[topic]) for topic in sorted(topics)},
    )
