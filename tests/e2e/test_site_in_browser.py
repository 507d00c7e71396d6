"""Every page of the documentation site, and a report of each kind, in a browser.

At 390, 1024 and 1400 pixels nothing is cut off, every link leads somewhere, and nothing is asked of other machines.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner

from dicp.debug.page import page as program_page
from diopi_conformance.report.page import page as conformance_page
from diopigen.project import Project
from op_tools.cli import main as op_tools
from tests.e2e.built_site import built_site
from tests.e2e.site_in_browser import DRIVER, Seen, seen
from tests.e2e.test_page_widths import PROGRAM, timings
from tests.unit.conformance.report_samples import REPORT

pytestmark = pytest.mark.deep(
    "matrix", "links and addresses as they are written, in test_docs_site.py; reports in test_page_widths.py"
)
WIDTHS = (390, 1024, 1400)


@pytest.fixture(scope="module")
def root(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, with reports beside its pages; its coverage pages are reports, too."""
    root = built_site(checkout, tmp_path_factory.mktemp("documentation"))
    folder = root / "reports"
    results = timings(tmp_path_factory.mktemp("results"))
    folder.mkdir()
    environment = {"DIOPI_SITE": str(root)}
    done = CliRunner(env=environment).invoke(
        op_tools, ["report", str(results), "--html", str(folder / "op-tools.html")]
    )
    assert done.exit_code == 0, done.output
    texts = {
        "conformance": conformance_page(REPORT, site="../conformance.html"),
        "program": program_page("inference", PROGRAM, "A long line. " * 99, "../torch-compile.html"),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def found(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    pages = [f"/{path.relative_to(root).as_posix()}" for path in sorted(root.rglob("*.html"))]
    found = seen(root, pages, WIDTHS, tmp_path_factory.mktemp("profile"), seconds=3000)
    assert sorted(found.pages) == sorted(pages)
    return found


def test_nothing_is_cut_off(found: Seen) -> None:
    faults = {page: about["faults"] for page, about in found.pages.items()}
    assert {page: what for page, what in faults.items() if what} == {}


def broken(found: Seen, root: Path) -> Iterator[tuple[str, str]]:
    """Pages, and links of theirs that lead nowhere."""
    for page, about in found.pages.items():
        for link in about["links"]:
            parts = urlsplit(link)
            if not parts.netloc.startswith("127.0.0.1:"):
                continue
            there: dict[str, Any] | None = found.pages.get(unquote(parts.path))
            file = root / unquote(parts.path).removeprefix("/")
            anchors = [] if there is None else there["anchors"]
            leads = not parts.fragment or "=" in parts.fragment or unquote(parts.fragment) in (*anchors, "__skip")
            if not (file.is_file() or (file / "index.html").is_file()) or not leads:
                yield page, link


def test_no_link_is_broken(found: Seen, root: Path) -> None:
    assert sum(len(about["links"]) for about in found.pages.values()) > 10 * len(found.pages)
    assert list(broken(found, root)) == []


def test_every_report_leads_to_the_site(found: Seen) -> None:
    for page, about in found.pages.items():
        if page.startswith("/reports/") or (page.startswith("/vendors/") and page.endswith("-coverage.html")):
            (link,) = (urlsplit(link) for link in about["links"] if urlsplit(link).path != page)
            assert link.path in found.pages, page


def test_nothing_is_missing_and_nothing_is_asked_of_other_machines(found: Seen) -> None:
    assert (found.missing, found.outside) == ([], [])


BAD = """<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><img src="https://elsewhere.invalid/a.png">
<p id="here"><a href="gone.html">gone</a> <a href="#there">there</a></p>
<div style="overflow: hidden"><table><tr><td style="min-width: 1200px">a wide cell</td></tr></table></div>
<div style="overflow: auto"><table><tr><td style="min-width: 1200px">that scrolls</td></tr></table></div>"""


def test_a_bad_page_is_seen(tmp_path: Path) -> None:
    """What the tests above look for is found where it is."""
    root = tmp_path / "site"
    root.mkdir()
    (root / "bad.html").write_text(BAD, encoding="utf-8")
    found = seen(root, ["/bad.html"], WIDTHS, tmp_path / "profile", seconds=60)
    faults = found.pages["/bad.html"]["faults"]
    assert faults == [[390, "table a wide cell"], [1024, "table a wide cell"], [0, "https://elsewhere.invalid/a.png"]]
    assert [urlsplit(link)[2:] for _, link in broken(found, root)] == [
        ("/gone.html", "", ""),
        ("/bad.html", "", "there"),
    ]
    assert found.outside == ["https://elsewhere.invalid/a.png"] and DRIVER not in found.missing
