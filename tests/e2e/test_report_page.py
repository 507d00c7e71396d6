"""The page of a conformance report, in a browser: tables, filters, sorting, keys, and the address that keeps them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from diopi_conformance.outcome import Verdict
from diopi_conformance.report import Axes, Report
from diopi_conformance.report.differences import differences
from diopi_conformance.report.page import page
from tests.e2e.browser import browser, probed
from tests.unit.conformance.report_samples import OUTCOMES, REPORT, outcome

BEGIN = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(String(event.message || event.target.src)), true);
addEventListener("securitypolicyviolation", (event) => errors.push(event.violatedDirective));
for (const name of ["error", "warn"]) console[name] = (...words) => errors.push(words.join(" "));
</script>"""

STEPS = """<script>
{
const press = (key, target) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const pause = (time) => new Promise((done) => setTimeout(done, time));
const lines = (id) => [...document.querySelectorAll(`#${id} tbody tr`)]
  .map((row) => [...row.cells].map((cell) => cell.firstChild?.textContent ?? ""));
const count = () => document.getElementById("count").textContent;
const fields = document.getElementById("filters").elements;
const set = async (name, value) => {
  fields[name].value = value;
  fields[name].dispatchEvent(new Event("input", { bubbles: true }));
  await pause(150);
};
const headings = (id) => [...document.querySelectorAll(`#${id} thead th`)];
const seen = { first: count(), functions: lines("functions"), cases: lines("cases").map((line) => line[0]) };
(async () => {
  press("/", document.body);
  seen.focus = document.activeElement.name;
  await set("text", "relu");
  seen.text = [count(), location.hash];
  press("Escape", fields.text);
  await pause(150);
  seen.cleared = [count(), location.hash];
  await set("type", "f16");
  seen.type = lines("cases").map((line) => line[0]);
  await set("type", "");
  await set("verdict", "known");
  seen.known = lines("cases").map((line) => line[0]);
  await set("verdict", "");
  await set("way", "plain");
  seen.plain = count();
  document.querySelector("#filters button[type=reset]").click();
  await pause(150);
  headings("functions")[4].querySelector("button").click();
  seen.sorted = [lines("functions").map((line) => line[0]), headings("functions").map((th) => th.ariaSort).slice(3, 5)];
  document.querySelector("#functions tbody tr button").click();
  seen.clicked = [fields.text.value, count()];
  seen.commands = [...document.querySelectorAll("td code")].map((code) => code.textContent);
  seen.fits = document.documentElement.scrollWidth <= innerWidth;
  seen.requests = performance.getEntriesByType("resource").map((entry) => entry.name);
  seen.errors = errors;
  const output = document.createElement("output");
  output.id = "probe";
  output.textContent = JSON.stringify(seen);
  document.body.append(output);
})();
}
</script>"""


def shown(report: Report, folder: Path, steps: str, address: str = "", against: Report | None = None) -> dict[str, Any]:
    text = page(report, None if against is None else differences(report, against))
    path = folder / "page.html"
    path.write_text(text.replace("<head>", f"<head>{BEGIN}", 1).replace("</body>", f"{steps}</body>"), encoding="utf-8")
    return probed(browser(), path.as_uri() + address, folder / "profile")


def test_tables_filters_and_keys(tmp_path: Path) -> None:
    found = shown(REPORT, tmp_path, STEPS, against=replace(REPORT, outcomes=OUTCOMES[:3]))
    assert found["functions"] == [
        ["diopiadd", "arithmetic", "2", "2", "", "", "", "1", "0.001", "1", "1", ""],
        ["diopiconv", "convolution", "2", "", "", "1", "1", "", "", "", "0/2", ""],
        ["diopirelu", "activation", "3", "", "3", "", "", "", "", "0/1", "0/1", "0/1"],
    ]
    del found["functions"]
    assert found == {
        "first": "7 of 7 cases, 3 functions",
        "cases": [
            "relu/f16/zero/1", "relu/f32/0", "relu/f64/0", "conv/f32/1", "conv/f32/0", "add/f16/strided/0", "add/f32/0",
        ],
        "focus": "text",
        "text": ["3 of 7 cases, 1 functions", "#text=relu"],
        "cleared": ["7 of 7 cases, 3 functions", ""],
        "type": ["relu/f16/zero/1", "add/f16/strided/0"],
        "known": ["conv/f32/1"],
        "plain": "3 of 7 cases, 2 functions",
        "sorted": [["diopirelu", "diopiadd", "diopiconv"], ["none", "descending"]],
        "clicked": ["=diopirelu", "3 of 7 cases, 1 functions"],
        "commands": [
            f"diopi-conformance repro {case} --vendor chip" for case in ("relu/f16/zero/1", "relu/f32/0", "relu/f64/0")
        ],
        "fits": True,
        "requests": [],
        "errors": [],
    }  # fmt: skip


LOOK = """<script>
{
const output = document.createElement("output");
output.id = "probe";
output.textContent = JSON.stringify({
  count: document.getElementById("count").textContent,
  drawn: document.querySelectorAll("#cases tbody tr").length,
  first: document.querySelector("#cases tbody th").textContent,
  commands: [...document.querySelectorAll("td code")].map((code) => code.textContent).slice(0, 1),
  bold: document.querySelectorAll("td b, td script").length,
  more: document.getElementById("more").textContent,
  errors,
});
document.body.append(output);
}
</script>"""


def test_the_address_chooses(tmp_path: Path) -> None:
    found = shown(REPORT, tmp_path, LOOK, "#text=expected&type=f32&cases=-case")
    assert (found["count"], found["first"]) == ("1 of 7 cases, 1 functions", "relu/f32/0")
    assert found["commands"] == ["diopi-conformance repro relu/f32/0 --vendor chip"]


def test_many_cases_are_drawn_in_parts_and_what_a_library_says_is_text(tmp_path: Path) -> None:
    bad = "</script><script>errors.push('ran')</script><b>bold</b>"
    outcomes = [replace(outcome(f"f{i % 500}/f32/{i}", seconds=i / 1e4), ulp=i / 100) for i in range(32_000)]
    outcomes[0] = outcome("a b's/f32/0", Verdict.FAIL, message=bad)
    axes = {o.id: Axes(family="many", elements="f32", view="contiguous") for o in outcomes}
    report = Report(vendor="chip", planned=32_000, outcomes=tuple(outcomes), axes=axes)
    assert shown(report, tmp_path, LOOK) == {
        "count": "32000 of 32000 cases, 501 functions",
        "drawn": 200,
        "first": "a b's/f32/0",
        "commands": ["""diopi-conformance repro 'a b'"'"'s/f32/0' --vendor chip"""],
        "bold": 0,
        "more": "Show 1000 more of 31800",
        "errors": [],
    }
