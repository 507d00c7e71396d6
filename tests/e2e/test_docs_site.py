"""The documentation site: built from the schemas, every internal link followed, pages opened in a browser."""

import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from diopigen.project import Project
from tests.e2e.browser import browser, probed, rendered
from tests.e2e.built_site import built_site

# One build of the site serves all tests of the file.
# What a page fetches by itself; a link may lead elsewhere, a page must not.
FETCHED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page says about itself and others."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.page.anchors.add(value)
            if name in ("href", "src") and value and (tag, dict(attrs).get("rel")) != ("link", "canonical"):
                self.page.links.append(value)
                if FETCHED.get(tag) == name:
                    self.page.fetched.append(value)


def read(path: Path) -> Page:
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    root: Path
    pages: dict[Path, Page]


@pytest.fixture(scope="module")
def site(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The site of this checkout."""
    root = built_site(checkout, tmp_path_factory.mktemp("documentation"))
    return Site(root=root, pages={path: read(path) for path in sorted(root.rglob("*.html"))})


def broken(site: Site, start: Path, link: str) -> str | None:
    """Why `link` leads nowhere, or None."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (start.parent / unquote(parts.path)).resolve() if parts.path else start
    if not target.is_relative_to(site.root):
        return "it leaves the site"
    if not target.is_file():
        return "there is no such file"
    anchors = site.pages[target].anchors if target in site.pages else set()
    if parts.fragment and unquote(parts.fragment) not in anchors | {"__skip"}:
        return "there is no such anchor"
    return None


def test_every_internal_link_leads_somewhere(site: Site) -> None:
    followed = [
        (path.relative_to(site.root).as_posix(), link, broken(site, path, link))
        for path, page in site.pages.items()
        if path.name != "404.html"  # its links are from the root of a server
        for link in page.links
    ]
    assert len(followed) > 10 * len(site.pages)
    assert [entry for entry in followed if entry[2] is not None] == []


def test_style_sheets_find_what_they_name(site: Site) -> None:
    missing = []
    for sheet in sorted(site.root.rglob("*.css")):
        for match in re.finditer(r"url\(['\"]?(?!data:|#)([^'\")]+)", sheet.read_text(encoding="utf-8")):
            if not (sheet.parent / match[1]).is_file():
                missing.append((sheet.name, match[1]))
    assert missing == []


def test_no_page_fetches_anything_from_elsewhere(site: Site) -> None:
    for path, page in site.pages.items():
        assert [link for link in page.fetched if urlsplit(link).netloc] == [], path


def test_every_operator_and_function_has_its_place(site: Site, checkout: Project) -> None:
    functions = site.pages[site.root / "functions.html"]
    facts = (checkout.generated / "include" / "diopi" / "functions.h").read_text(encoding="utf-8")
    declared = re.findall(r"^DIOPI_API diopiError_t (diopi\w+)\(", facts, re.M)
    linked = {urlsplit(link).fragment for link in functions.links}
    assert declared and {symbol.lower() for symbol in declared} - linked == set()


def test_pages_of_operators_say_all_that_follows(site: Site) -> None:
    text = (site.root / "operators" / "arithmetic" / "add.html").read_text(encoding="utf-8")
    plain = re.sub(r"<[^>]+>", "", text)
    for fact in (
        "diopiError_t diopiAddInpScalar(",
        "promote(T, U)",
        "broadcast(input, other)",
        "add.out",
        "droplet",
        "kernel line",
        "schemas/ops/arithmetic.yaml:",
    ):
        assert fact.replace("<", "&lt;") in plain
    assert "<math " in text and "<mtext>alpha</mtext>" in text


def test_the_index_of_the_search_knows_functions(site: Site) -> None:
    documents = json.loads((site.root / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    locations = {document["location"] for document in documents}
    assert "operators/arithmetic/add.html#diopiaddinp" in locations
    assert not any(location.startswith("sources/") for location in locations)


# -- in a browser ----------------------------------------------------------------------------------------------

PROBE = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message || event.target.src || event.target.href)), true);
addEventListener("load", () => setTimeout(() => {
  const formula = document.querySelector("math").getBoundingClientRect();
  const heading = document.querySelector("h1");
  const output = document.createElement("output");
  output.id = "probe";
  output.textContent = JSON.stringify({
    errors,
    heading: heading.firstChild.textContent.trim(),
    formula: [formula.width > 60, formula.height > 10],
    styled: getComputedStyle(document.querySelector(".md-header")).position,
    tables: document.querySelectorAll("article table").length,
    wide: document.documentElement.scrollWidth <= innerWidth,
  });
  document.body.append(output);
}, 500));
</script>"""


def test_a_page_in_a_browser(site: Site, tmp_path: Path) -> None:
    page = site.root / "operators" / "arithmetic" / "add.html"
    copy = page.with_name("probe.html")
    copy.write_text(page.read_text(encoding="utf-8").replace("<head>", f"<head>{PROBE}", 1), encoding="utf-8")
    try:
        found = probed(browser(), copy.as_uri(), tmp_path)
    finally:
        copy.unlink()
    assert found["tables"] >= 4
    del found["tables"]
    assert found == {
        "errors": [],
        "heading": "add",
        "formula": [True, True],
        "styled": "sticky",
        "wide": True,
    }


def test_search_works_from_the_folder(site: Site, tmp_path: Path) -> None:
    text = rendered(browser(), f"{(site.root / 'index.html').as_uri()}?q=diopiConvolution2d", tmp_path)
    results = re.findall(r'href="([^"]*)" class="md-search-result__link"', text)
    assert any("operators/convolution/convolution2d.html" in result for result in results), results[:5]
