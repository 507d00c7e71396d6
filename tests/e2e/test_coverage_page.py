"""The interactive page of a coverage, in a browser: filters, sorting, keys, and the address that keeps them."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopigen.cli import cli
from diopigen.project import Project
from tests.e2e.browser import browser, probed, rendered

KEYS = """<script>
(async () => {
const press = (key, target) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const shown = () => document.querySelectorAll("#functions tbody tr").length;
const headings = [...document.querySelectorAll("#functions thead th")];
const pause = (time) => new Promise((done) => setTimeout(done, time));
const seen = {};
press("/", document.body);
seen.focus = document.activeElement.name;
form.elements.text.value = "diopiadd";
form.elements.text.dispatchEvent(new Event("input", { bubbles: true }));
await pause(150);
seen.found = shown() > 0 && shown() < page.rows.length;
seen.address = location.hash;
headings[0].querySelector("button").click();
headings[0].querySelector("button").click();
seen.sort = headings.map((heading) => heading.getAttribute("aria-sort")).slice(0, 2);
press("Escape", form.elements.text);
await pause(150);
seen.cleared = shown() === page.rows.length;
seen.fits = document.documentElement.scrollWidth <= innerWidth;
const output = document.createElement("output");
output.id = "probe";
output.textContent = JSON.stringify(seen);
document.body.append(output);
})();
</script>"""


@pytest.fixture(scope="module")
def page(checkout: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Droplet's page."""
    path = tmp_path_factory.mktemp("coverage") / "droplet.html"
    words = ["coverage", "--vendor", "droplet", "--format", "html", "--out", str(path)]
    result = CliRunner().invoke(cli, ["--project", str(checkout.root), *words])
    assert result.exit_code == 0, result.output
    return path


def shown(text: str) -> list[str]:
    """The functions in the rows that the filters leave."""
    return re.findall(r'<tr data-topic="[^"]*"[^>]*>\s*<th[^>]*>(\w+)', text)


def test_the_address_filters_and_sorts(page: Path, tmp_path: Path) -> None:
    everything = shown(rendered(browser(), page.as_uri(), tmp_path))
    address = f"{page.as_uri()}#dtype=f16&state=converted&sort=-function"
    converted = shown(rendered(browser(), address, tmp_path))
    assert "diopiLayerNorm" in converted and "diopiAdd" not in converted and "diopiAdd" in everything
    assert converted == sorted(converted, key=str.lower, reverse=True) != []


def test_text_finds_functions_by_their_overloads(page: Path, tmp_path: Path) -> None:
    text = rendered(browser(), f"{page.as_uri()}#text=add.out", tmp_path)
    found = shown(text)
    assert {"diopiAdd", "diopiAddScalar"} <= set(found)
    assert re.search(rf">{len(found)} of \d+ functions<", text)


def test_functions_that_failed_are_shown_first(checkout: Project, tmp_path: Path) -> None:
    outcome = {"id": "add/f32/0", "function": "diopiAdd", "elements": "f32", "verdict": "fail", "ulp": None}
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"version": 2, "planned": 1, "outcomes": [outcome]}))
    path = tmp_path / "failed.html"
    words = ["--vendor", "droplet", "--format", "html", "--out", str(path), "--results", str(report)]
    result = CliRunner().invoke(cli, ["--project", str(checkout.root), "coverage", *words])
    assert result.exit_code == 0, result.output
    assert shown(rendered(browser(), path.as_uri(), tmp_path)) == ["diopiAdd"]
    assert len(shown(rendered(browser(), f"{path.as_uri()}#cases=", tmp_path))) > 100


def test_keys_and_buttons(page: Path, tmp_path: Path) -> None:
    copy = tmp_path / "probe.html"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{KEYS}</body>"), encoding="utf-8")
    assert probed(browser(), copy.as_uri(), tmp_path) == {
        "focus": "text",
        "found": True,
        "address": "#text=diopiadd",
        "sort": ["descending", "none"],
        "cleared": True,
        "fits": True,
    }
