"""Reports link the documentation site where there is one, and say how to get it where there is none."""

from pathlib import Path

import pytest

from dicp.debug.page import page as program_page
from diopi_conformance.report.page import page as conformance_page
from diopigen.page import site
from diopigen.page.site import site_link
from tests.unit.conformance.report_samples import REPORT

PROGRAM = {"instructions": [], "launches_unfused": 0, "arena_bytes": 0, "unplanned_bytes": 0, "memory": []}


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site with one page."""
    folder = tmp_path / "build" / "a site"
    folder.mkdir(parents=True)
    (folder / "op-tools.html").write_text("", encoding="utf-8")
    monkeypatch.setattr(site, "_BUILT", folder)
    monkeypatch.delenv("DIOPI_SITE", raising=False)
    return folder


def test_the_site_of_the_checkout_by_its_place(built: Path, tmp_path: Path) -> None:
    assert site_link(tmp_path / "results" / "report.html", "op-tools.html") == "../build/a%20site/op-tools.html"
    assert site_link(tmp_path / "report.html", "elsewhere.html") == ""


def test_an_address(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPI_SITE", "https://docs.invalid/chip/")
    assert site_link(tmp_path / "report.html", "op-tools.html") == "https://docs.invalid/chip/op-tools.html"


def test_a_folder(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = built.rename(tmp_path / "other")
    monkeypatch.setenv("DIOPI_SITE", str(other))
    assert site_link(tmp_path / "report.html", "op-tools.html") == "other/op-tools.html"
    assert (site_link(tmp_path / "report.html", "gone.html"), capsys.readouterr().err) == (
        "",
        f"DIOPI_SITE: there is no {other}/gone.html; the report has no link to it\n",
    )


def test_a_report_into_a_device_has_no_place_to_link_from(built: Path) -> None:
    assert site_link(Path("/dev/null"), "op-tools.html") == ""


@pytest.mark.parametrize("link", ["../site/page.html", ""])
def test_pages_have_the_link_or_say_how_to_get_it(link: str) -> None:
    for page in (conformance_page(REPORT, site=link), program_page("forward", PROGRAM, "", link)):
        footer = page.partition("<footer>")[2].partition("</footer>")[0]
        assert (f'<a href="{link}">Documentation</a>' in footer, "make docs" in footer) == (bool(link), not link)
