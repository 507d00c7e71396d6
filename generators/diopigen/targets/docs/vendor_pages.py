"""The page of one vendor: its figures, what it lacks, and the interactive report."""

from dataclasses import dataclass

from diopigen.targets.coverage import Coverage
from diopigen.targets.coverage.rows import State
from diopigen.targets.coverage.view import CoverageView, view
from diopigen.targets.docs.markdown import code, prose
from diopigen.targets.docs.paths import coverage_page, operator_page, relative, source_page, topic_page, vendor_page
from diopigen.targets.docs.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorView:
    name: str
    doc: str
    coverage: CoverageView
    topics: tuple[str, ...]  # links, in the order of the coverage's topics
    report: str  # the link to the interactive report
    rules: str | None  # the link to convert_config.yaml
    missing: tuple[str, ...]  # links


def vendor_view(coverage: Coverage, site: Site) -> VendorView:
    """The view of one vendor's page."""
    page = vendor_page(coverage.vendor)
    config = f"vendors/{coverage.vendor}/convert_config.yaml"
    return VendorView(
        name=prose(coverage.vendor),
        doc=prose(coverage.doc),
        coverage=view(coverage, html=False),
        topics=tuple(f"[{prose(t.name)}]({relative(page, topic_page(t.name))})" for t in coverage.topics),
        report=relative(page, coverage_page(coverage.vendor)),
        rules=f"[{code(config)}]({relative(page, source_page(config))})" if config in site.sources else None,
        missing=tuple(
            f"[`{row.function.symbol}`]({relative(page, operator_page(row.topic, row.function.op))})"
            for row in coverage.rows
            if row.state is State.MISSING
        ),
    )
