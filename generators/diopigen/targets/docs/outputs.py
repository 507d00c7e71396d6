"""Which pages the site has, and the configuration that builds them."""

from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.diagnostics import Diagnostics
from diopigen.targets.coverage import page as coverage_report
from diopigen.targets.docs.formula import BadFormula
from diopigen.targets.docs.guides import guide
from diopigen.targets.docs.lists import functions_view, operators_view, runtime_view, topic_view
from diopigen.targets.docs.nav import site_view
from diopigen.targets.docs.operator import operator_view
from diopigen.targets.docs.paths import (
    FUNCTIONS,
    OPERATORS,
    RUNTIME,
    coverage_page,
    guide_page,
    operator_page,
    program_page,
    source_page,
    topic_page,
    vendor_page,
)
from diopigen.targets.docs.programs import program_view
from diopigen.targets.docs.site import Index, Site, index
from diopigen.targets.docs.vendor_pages import vendor_view
from diopigen.targets.output import Output, Render

_ASSETS = ("assets/iframe-worker.js", "assets/site.css")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    path: str
    lines: str  # indented as a block


def outputs(site: Site, render: Render, diagnostics: Diagnostics) -> Iterator[Output]:
    """mkdocs.yml and all pages, under pages/; a formula that cannot be read is a finding, and its page is left out."""
    found = index(site)
    yield Output(path="mkdocs.yml", text=render("docs/mkdocs.yml.j2", site_view(site, found)))
    for page, text in (*_lists(site, found, render), *_operators(site, found, render, diagnostics)):
        yield Output(path=f"pages/{page}", text=text)


def _operators(site: Site, found: Index, render: Render, diagnostics: Diagnostics) -> Iterator[tuple[str, str]]:
    for op in site.program.ops:
        try:
            view = operator_view(op, site, found)
        except BadFormula as error:
            diagnostics.error("bad-formula", str(error), op.place(error.path).span, "fix the TeX")
        else:
            yield operator_page(op.topic, op.name), render("docs/operator.md.j2", view)


def _lists(site: Site, found: Index, render: Render) -> Iterator[tuple[str, str]]:
    for path in site.guides:
        yield guide_page(path), guide(path, site)
    for path, text in site.pictures.items():
        yield path.removeprefix("docs/"), text
    for program in site.programs:
        yield program_page(program.program.name), render("docs/program.md.j2", program_view(program))
    for asset in _ASSETS:
        yield asset, render(f"docs/{asset}", None)
    yield OPERATORS, render("docs/operators.md.j2", operators_view(found))
    yield FUNCTIONS, render("docs/functions.md.j2", functions_view(site))
    yield RUNTIME, render("docs/runtime.md.j2", runtime_view(site.program.runtime))
    for topic, ops in found.topics.items():
        yield topic_page(topic), render("docs/topic.md.j2", topic_view(topic, ops, found))
    for coverage in site.coverages:
        yield vendor_page(coverage.vendor), render("docs/vendor.md.j2", vendor_view(coverage, site))
        yield coverage_page(coverage.vendor), coverage_report(coverage, "html", render, f"{coverage.vendor}.html")
    for path, text in site.sources.items():
        yield source_page(path), render("docs/source.md.j2", SourceView(path=path, lines=text.rstrip("\n")))
