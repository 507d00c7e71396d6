"""The page and the JSON of what tools found: numbers drawn together rightly, whole, safe, the same each time."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import op_tools
from op_tools.cli import main
from op_tools.report.page import scaled
from tests.op_tools.faulty import Faulty, wrong_value

TIMINGS = [
    {"operator": "aten.mm.default", "function": "torch.mm", "phase": "forward", "given": "float32[8, 8], float32[8, 8]"}
    | {"bytes": 768, "flop": 1024, "calls": 6, "milliseconds": [1.0, 2.0, 3.0, 4.0], "_warm": [5.0, 5.0]}
    | {"on_device": False},
    {"operator": "aten.mm.default", "function": "", "phase": "backward", "given": "float32[8, 4], float32[4, 8]"}
    | {"bytes": 1000, "flop": 512, "calls": 1, "milliseconds": [], "_warm": [10.0]}
    | {"on_device": False},
    {"operator": "aten.relu.default", "function": "torch.relu", "phase": "forward", "given": "float32[<b>]"}
    | {"bytes": 64, "flop": 0, "calls": 3, "milliseconds": [10.0], "_warm": [0.0, 0.0]}
    | {"on_device": False},
]
ROWS = [
    ("3", "torch.mm result", "True", "1.0", "1e-6", "1e-5", "", "", "", "aten.mm.default", "1.5"),
    ("4", "torch.mm result", "False", "0.9", "0.25", "inf", "", "", "result[0] is 3", "aten.mm.default", "5e6"),
    ("5", "torch.relu result", "True", "1.0", "0.0", "0.0", "", "", "", "aten.relu.default", "0.0"),
]
NUMBERS = {name: 0.0 for name in ("least", "greatest", "mean", "std", "norm")} | {"shape": [8], "nan": 1, "inf": 0}
OVERFLOW = {"number": 1, "operator": "aten.mm.default", "phase": "forward", "place": "result", "location": "train.py:3"}
RECORD = {
    "fallback": {"calls": {"aten.relu.default": 2}, "left": [["aten.rand.default", "random", 4]]},
    "compare": {"compared": {}, "mismatches": [], "left": [["aten.rand.default", "random", 1]]},
    "overflow": {"found": [OVERFLOW | {"numbers": NUMBERS, "inputs": {"self": NUMBERS}}]},
    # Times are taken from the tables where there are any.
    "time": {"timings": TIMINGS},
}


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "op_tools_results"
    times, compared = folder / "op_time_measure_result", folder / "op_autocompare_result"
    for made in (times, compared, folder / "op_run_result"):
        made.mkdir(parents=True)
    (times / "op_elasped_summary_pid7_now.json").write_text(json.dumps({"timings": TIMINGS}))
    with (times / "op_elasped_info_pid7_now.csv").open("w") as file:
        csv.writer(file).writerows([["name", "forward_elasped", "backward_elasped"], ["torch.mm", "5.0", ""]])
    with (compared / "op_autocompare_info_pid7_now.csv").open("w") as file:
        csv.writer(file).writerows([op_tools.tools.compare.COLUMNS, *ROWS])
    (folder / "op_run_result" / "op_run_info_pid7_now.json").write_text(json.dumps(RECORD))
    return folder


def report(folder: Path, *words: str) -> tuple[int, str, dict]:
    """The exit code, the page and the JSON."""
    made = folder.parent / "made.json"
    done = CliRunner().invoke(main, ["report", str(folder), "--json", str(made), *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.exit_code, (folder / "report.html").read_text(), json.loads(made.read_text())


class Page(HTMLParser):
    """The tables' cells, texts by element, links and places; refuses what is not closed."""

    VOID = ("meta", "link", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.rows: list[list[str]] = []
        self.bars: list[float] = []
        self.sources: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")
        elif tag == "rect":
            self.bars.append(float(given["width"]))
        elif tag == "a":
            self.links.append(given["href"])
        self.sources += [given[name] for name in ("src", "action", "data") if name in given]
        if "id" in given:
            assert given["id"] not in self.places, given["id"]
            self.places.add(given["id"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data.strip()


def test_numbers_of_all_tools_are_put_together_by_operator(results):
    code, _, found = report(results)
    assert code == 0 and found["broken"] == []
    first, second, third = found["operators"]
    assert first == {
        "operator": "aten.mm.default",
        "functions": ["torch.mm"],
        "calls": 7,
        "phases": {"backward": 1, "forward": 6},
        "milliseconds": {"total": 30.0, "p50": 3.0, "p95": 10.0, "p99": 10.0},
        "bytes": 6 * 768 + 1000,
        "flop": 6 * 1024 + 512,
        "bytes_per_second": (6 * 768 + 1000) / 0.03,
        "flop_per_second": (6 * 1024 + 512) / 0.03,
        "compared": 2,
        "wrong": 1,
        "worst": {"absolute": 0.25, "relative": "inf", "ulp": 5e6},
        "fault": "result[0] is 3",
        "fallbacks": 0,
        "left": {},
        "overflows": 1,
        "forms": [
            {"given": TIMINGS[0]["given"], "calls": 6, "total": 20.0, "p50": 3.0, "captures": []},
            {"given": TIMINGS[1]["given"], "calls": 1, "total": 10.0, "p50": 10.0, "captures": []},
        ],
    }
    assert (second["operator"], second["calls"], second["fallbacks"]) == ("aten.relu.default", 3, 2)
    assert (third["operator"], third["left"]) == ("aten.rand.default", {"compare: random": 1, "fallback: random": 4})


GOLDEN_ROWS = [
    [
        "aten.mm.default",
        "7",
        "30",
        "75.0 %",
        "3",
        "10",
        "10",
        "5.61 kB",
        "6.66 k",
        "0.000187",
        "0.000222",
        "2",
        "1",
        "5e+06",
        "0.25",
        "inf",
        "",
        "1",
        "",
    ],
    [
        "aten.relu.default",
        "3",
        "10",
        "25.0 %",
        "10",
        "10",
        "10",
        "192 B",
        "",
        "1.92e-05",
        "",
        "1",
        "0",
        "0",
        "0",
        "0",
        "2",
        "",
        "",
    ],
    ["aten.rand.default", "0", "", "0.0 %", *[""] * 15],
]
GOLDEN_HEAD = (
    "<div><dt>operators</dt><dd>3</dd></div>\n<div><dt>calls</dt><dd>10</dd></div>\n<div><dt>ms</dt><dd>40</dd></div>\n"
    "<div><dt>ms in forward</dt><dd>30</dd></div>\n<div><dt>ms in backward</dt><dd>10</dd></div>\n"
    "<div><dt>results compared</dt><dd>3</dd></div>\n<div><dt>wrong</dt><dd>1</dd></div>\n"
    "<div><dt>calls on the CPU</dt><dd>2</dd></div>\n<div><dt>overflows</dt><dd>1</dd></div>\n"
)
GOLDEN_BAR = (
    '<text x="322" y="14" text-anchor="end">aten.relu.default</text>\n'
    '<rect x="330" y="3" width="153.3" height="14" rx="1"><title>aten.relu.default: 10 ms (25.0 %)</title></rect>\n'
    '<text x="489.3" y="14">10 ms (25.0 %)</text>'
)


def test_the_page_is_whole_and_has_the_numbers(results):
    _, text, _ = report(results)
    page = Page(text)
    assert [row for row in page.rows if len(row) == 19][1:] == GOLDEN_ROWS
    assert GOLDEN_HEAD in text and GOLDEN_BAR in text
    assert page.bars[:2] == [460.0, 153.3] and len(page.bars) == 2 + 11  # time, and the histogram's bins
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.places
    assert '<td class="number bad" data-key="1">1</td>' in text and 'data-key="Infinity">inf<' in text
    assert "something is wrong" in text and "nothing wrong was found" not in text
    assert re.findall("<h2[^>]*>(.*?)</h2>", text)[0] == "Calls that are wrong"
    assert re.findall('<p class="failure"><a href="#op-[0-9]+">(.*?)</a>', text) == [
        "aten.mm.default: 1 wrong, 1 with infinities or NaN"
    ]


def test_the_page_needs_no_network_and_what_is_in_it_is_no_markup(results):
    _, text, _ = report(results)
    assert Page(text).sources == [] and "://" not in text and "default-src 'none'" in text
    assert "float32[&lt;b&gt;]" in text and "<b>]" not in text


def test_equal_results_give_equal_bytes(results):
    first = report(results)
    assert report(results) == first


def test_captures_are_linked_from_where_the_page_lies(tmp_path):
    folder = tmp_path / "found here"
    with (
        Faulty("aten.relu.default", wrong_value),
        op_tools.OpAutoCompare(".*", table=False, dump=folder / "captures", write=lambda _: None),
    ):
        torch.relu(torch.ones(3))
    code, text, found = report(folder)
    (operator,) = found["operators"]
    (form,) = operator["forms"]
    assert code == 0 and (operator["operator"], operator["wrong"]) == ("aten.relu.default", 1)
    assert form["given"] == "self=float32[3]" and (folder / form["captures"][0] / "input.json").exists()
    (link,) = (link for link in Page(text).links if "captures" in link)
    assert (folder / link).resolve().exists() and "aten.relu.default, forward): result[2] is 1.00999999" in found[
        "faults"
    ][0]
    (tmp_path / "pages").mkdir()
    CliRunner().invoke(main, ["report", str(folder), "--html", str(tmp_path / "pages" / "page.html")])
    (link,) = (link for link in Page((tmp_path / "pages" / "page.html").read_text()).links if "captures" in link)
    assert link.startswith("../found%20here/captures/")


def test_tables_without_statistics_beside_them_are_read_by_themselves(results):
    (results / "op_time_measure_result" / "op_elasped_summary_pid7_now.json").unlink()
    _, _, found = report(results)
    by_name = {operator["operator"]: operator for operator in found["operators"]}
    assert by_name["torch.mm"]["milliseconds"]["total"] == 5.0
    assert by_name["aten.mm.default"]["milliseconds"]["total"] == 0.0


def test_what_tools_write_is_what_the_report_reads(tmp_path, monkeypatch):
    monkeypatch.setenv("OP_TOOLS_RESULTS_DIR", str(tmp_path / "results"))
    a, b = torch.ones(4, 8), torch.ones(8, 2)
    with op_tools.OpTimeMeasure("aten.mm"), op_tools.OpAutoCompare("aten.mm"):
        for _ in range(5):
            a @ b
    _, _, found = report(tmp_path / "results")
    (operator,) = found["operators"]
    assert (operator["operator"], operator["calls"], operator["compared"]) == ("aten.mm.default", 5, 5)
    assert operator["bytes"] == 5 * 4 * (32 + 16 + 8) and operator["flop"] == 5 * 2 * 4 * 8 * 2
    assert operator["milliseconds"]["p50"] > 0 and operator["worst"]["ulp"] == 0.0


def test_files_that_are_broken_are_named_and_the_others_told(results):
    (results / "op_run_result" / "op_run_info_pid8_now.json").write_text("{")
    (results / "op_autocompare_result" / "op_autocompare_info_pid8_now.csv").write_text("a,b\n1,2\n")
    code, text, found = report(results)
    assert code == 1 and len(found["operators"]) == 3 and len(found["broken"]) == 2
    assert found["broken"][0].endswith("op_autocompare_info_pid8_now.csv has no column 'name'")
    assert "op_run_info_pid8_now.json is no JSON" in found["broken"][1]
    assert "op_autocompare_info_pid8_now.csv has no column &#39;name&#39;" in text


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("time", "timings", 0, "milliseconds"), "abc", "'milliseconds': Input should be a valid list"),
        (("time", "timings", 0, "calls"), "many", "'calls': Input should be a valid integer"),
        (("time", "timings", 0, "operator"), None, "'operator': Input should be a valid string"),
        (("time", "timings", 0), [], "Input should be a dictionary or an instance of Timing"),
        (("compare", "mismatches"), [{"text": 1}], "'number': Field required"),
        (("fallback", "calls"), {"aten.mm.default": []}, "'aten.mm.default': Input should be a valid integer"),
        (("fallback", "left"), [["aten.mm.default"]], "'0.1': Field required"),
        (("overflow", "found"), [{}], "'number': Field required"),
    ],
)
def test_an_entry_of_another_form_is_named(tmp_path, place, value, says):
    record = json.loads(json.dumps(RECORD))
    holder = record
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "op_run_info_pid7_now.json").write_text(json.dumps(record))
    code, _, found = report(folder)
    assert code == 1 and [text.partition(", ")[0] for text in found["broken"]] == [
        f"an entry is not as the tools write it: ValueError: {says}"
    ]


def test_a_folder_without_results_is_refused(tmp_path):
    done = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert done.exit_code == 2
    assert done.output == f"op-tools: {tmp_path} holds no results; 'op-tools run SCRIPT --time --compare' writes some\n"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2.5e9, "2.5 GB"), (3e16, "30 PB")]
)
def test_amounts_are_scaled(number, text):
    assert scaled(number, "B") == text
