"""The pages of reports on narrow and wide screens: only what scrolls in a box of its own is wider than the screen."""

import html
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from dicp.debug.page import page as program_page
from diopi_conformance.report.page import page as conformance_page
from diopigen.cli import cli
from diopigen.project import Project
from op_tools.cli import main as op_tools
from tests.e2e.browser import browser, probed
from tests.unit.conformance.report_samples import REPORT

WIDTHS = (390, 1024, 1400)
TOLD = """<script>
{
const outside = [...document.querySelectorAll("body table")].filter((table) => !table.closest(".scroll")).length;
const { scrollWidth, clientWidth } = document.documentElement;
const count = document.getElementById("count").textContent;
parent.postMessage([innerWidth, scrollWidth <= clientWidth, outside, count], "*");
}
</script>"""
FRAMES = """<script>
const told = [];
addEventListener("message", ({ data }) => {
  told.push(data);
  if (told.length < WIDTHS) return;
  const output = document.createElement("output");
  output.id = "probe";
  output.textContent = JSON.stringify({ told: told.sort(([a], [b]) => a - b) });
  document.body.append(output);
});
</script>"""
VIEW = {"dtype": "f32", "sizes": [8, 8], "memory": "argument 0"}
INSTRUCTION = {
    "kind": "kernel",
    "sizes": [8, 8],
    "nodes": ["sigmoid", "mul"] * 9,
    "reads": [VIEW] * 9,
    "writes": [VIEW],
}
PROGRAM: dict[str, Any] = {
    "instructions": [INSTRUCTION] * 200,
    "launches_unfused": 400,
    "arena_bytes": 64,
    "unplanned_bytes": 128,
    "memory": [{"kind": "arena", "offset": 0, "bytes": 32, "first": 0, "last": 150}],
}


def told(text: str, folder: Path) -> list[Any]:
    """Of each width: whether the page fits, tables outside of boxes that scroll, and how many rows it counts."""
    page = html.escape(text.replace("</body>", f"{TOLD}</body>"))
    frames = "".join(
        f'<iframe width="{width}" height="800" style="border: 0" srcdoc="{page}"></iframe>' for width in WIDTHS
    )
    path = folder / "frames.html"
    path.write_text(f"{FRAMES.replace('WIDTHS', str(len(WIDTHS)))}<body>{frames}</body>", encoding="utf-8")
    found: list[Any] = probed(browser(), path.as_uri(), folder / "profile")["told"]
    return found


def expected(count: str) -> list[Any]:
    return [[width, True, 0, count] for width in WIDTHS]


def test_conformance(tmp_path: Path) -> None:
    assert told(conformance_page(REPORT), tmp_path) == expected("7 of 7 cases, 3 functions")


def test_a_compiled_program(tmp_path: Path) -> None:
    assert told(program_page("inference", PROGRAM, "A long line. " * 99), tmp_path) == expected("200 of 200")


def test_coverage(checkout: Project, tmp_path: Path) -> None:
    path = tmp_path / "droplet.html"
    words = ["coverage", "--vendor", "droplet", "--format", "html", "--out", str(path)]
    assert CliRunner().invoke(cli, ["--project", str(checkout.root), *words]).exit_code == 0
    *_, (*_, count) = found = told(path.read_text(encoding="utf-8"), tmp_path)
    assert found == expected(count) and count.endswith(" functions")


def timings(folder: Path) -> Path:
    """The folder of results of op tools, made in `folder`."""
    timing = {
        "operator": "aten.mm.default",
        "function": "torch.mm",
        "phase": "forward",
        "given": "float32[8, 8], " * 20,
    }
    numbers = {"bytes": 768, "flop": 1024, "calls": 6, "milliseconds": [1.0], "_warm": [5.0, 5.0], "on_device": False}
    results = folder / "results"
    (results / "op_time_measure_result").mkdir(parents=True)
    path = results / "op_time_measure_result" / "op_elasped_summary_pid7_now.json"
    path.write_text(json.dumps({"timings": [timing | numbers]}), encoding="utf-8")
    return results


def test_operators(tmp_path: Path) -> None:
    path = tmp_path / "operators.html"
    done = CliRunner().invoke(op_tools, ["report", str(timings(tmp_path)), "--html", str(path)])
    assert path.is_file(), done.output
    assert told(path.read_text(encoding="utf-8"), tmp_path) == expected("1 of 1 operators")
