"""A coverage report in each output format."""

from typing import Literal, assert_never

from diopigen.targets.coverage.document import document
from diopigen.targets.coverage.totals import Coverage
from diopigen.targets.coverage.view import view
from diopigen.targets.output import Render

Format = Literal["markdown", "json", "html"]
FORMATS: tuple[Format, ...] = ("markdown", "json", "html")


def page(coverage: Coverage, form: Format, render: Render, site: str = "") -> str:
    """The text of the report; as HTML it links `site`, the documentation."""
    match form:
        case "json":
            return document(coverage)
        case "markdown":
            return render("coverage/coverage.md.j2", view(coverage, html=False))
        case "html":
            return render("coverage/coverage.html.j2", view(coverage, html=True, site=site))
        case other:
            assert_never(other)
