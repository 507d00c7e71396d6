"""The miniature's documentation and coverage; `make golden` writes the pages to pages/."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopigen.cli import cli
from diopigen.project import Project
from tests.golden.conftest import lay_out
from tests.processes import ROOT

PAGES = Path(__file__).parent / "pages"

# Each with the reason why somebody reads its golden.
DOCS = {
    "mkdocs.yml": "the order of all pages",
    "pages/index.md": "links that leave the folder",
    "pages/functions.md": "every function",
    "pages/operators/index.md": "the topics",
    "pages/operators/arithmetic/index.md": "the operators of a topic",
    "pages/operators/arithmetic/add.md": "four forms, a kernel, casts, bindings",
    "pages/operators/window/avg_pool2d.md": "a backward function, layouts",
    "pages/vendors/chip.md": "what a vendor has",
    "pages/conformance.md": "a guide beside what it is about",
}
INDEX = """\
# Miniature

## How to

- [Guide](guide.md) and [the operators](../schemas/ops/arithmetic.yaml), [elsewhere](../README.md),
  [`README.md`](../README.md).

```
[kept](../README.md)
```

## Reference

- [Cases](../conformance/README.md#cases)
"""

SUITE = """\
# The suite of `diopi-conformance run`

[A guide](../docs/guide.md), [what they test](../schemas/ops/arithmetic.yaml), [`op-tools run`](../docs/guide.md).

## Cases

`diopi-conformance run --vendor chip` and `diopigen lint` lead to their descriptions, `diopigen dream` to none.
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = lay_out(tmp_path_factory.mktemp("miniature") / "project")
    (project.root / "docs").mkdir()
    (project.root / "docs" / "index.md").write_text(INDEX, encoding="utf-8")
    (project.root / "conformance").mkdir()
    (project.root / "conformance" / "README.md").write_text(
        SUITE,
        encoding="utf-8",
    )
    (project.root / "docs" / "guide.md").write_text(
        "# A guide\n\nBack to [the first page](index.md).\n", encoding="utf-8"
    )
    (project.root / "docs" / "unlinked.md").write_text("# A page without a link\n", encoding="utf-8")
    return project


@pytest.fixture(scope="module")
def site(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    result = CliRunner().invoke(cli, ["--project", str(project.root), "docs", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder


@pytest.mark.parametrize("page", DOCS)
def test_pages_are_their_goldens(page: str, site: Path, golden: Callable[[Path, str], None]) -> None:
    path = PAGES / page.removeprefix("pages/").replace("/", "-")
    golden(path, (site / page).read_text(encoding="utf-8"))


def test_the_first_page_links_every_guide_under_a_heading() -> None:
    docs = ROOT / "docs"
    _, _, lists = (docs / "index.md").read_text("utf-8").partition("\n## ")
    linked = re.findall(r"^- \[.+?\]\(([\w./-]+\.md)\)", lists, re.MULTILINE)
    guides = ["index.md", *(name for name in linked if not name.startswith("../"))]
    assert sorted(guides) == sorted(path.name for path in docs.glob("*.md"))
    assert [name for name in linked if not (docs / name).is_file()] == []


@pytest.mark.parametrize(("form", "suffix"), [("markdown", "md"), ("json", "json")])
def test_coverages_are_their_goldens(
    form: str, suffix: str, project: Project, golden: Callable[[Path, str], None]
) -> None:
    result = CliRunner().invoke(cli, ["--project", str(project.root), "coverage", "--vendor", "chip", "--format", form])
    assert result.exit_code == 0, result.output
    golden(PAGES / f"coverage.{suffix}", result.stdout)


def test_a_page_that_is_gone_is_removed(project: Project, site: Path) -> None:
    (project.root / "docs" / "guide.md").rename(project.root / "docs" / "other.md")
    result = CliRunner().invoke(cli, ["--project", str(project.root), "docs", "--out", str(site)])
    assert result.exit_code == 0, result.output
    assert not (site / "pages" / "guide.md").exists() and (site / "pages" / "other.md").is_file()
