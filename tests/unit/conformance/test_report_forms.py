"""A report as JUnit XML, CSV and HTML, and beside an earlier one."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from diopi_conformance.cli import cli
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report import Report, write_report
from diopi_conformance.report.differences import differences
from diopi_conformance.report.histogram import histogram
from diopi_conformance.report.junit import junit
from diopi_conformance.report.page import page
from diopi_conformance.report.page_data import page_data
from diopi_conformance.report.table import COLUMNS, table
from tests.unit.conformance.report_samples import AXES, OUTCOMES, REPORT, outcome

HOSTILE = "status 3: <b>&amp;</b> ]]> </script><script>alert('x')</script> \x00\x1b[31m\u2028 \U0001f600"


def hostile() -> Report:
    found = (*OUTCOMES, outcome("relu/i8/0", Verdict.FAIL, message=HOSTILE), outcome("a'<i>&b/f32/0", Verdict.FAIL))
    return replace(REPORT, vendor="chip <&>", outcomes=found, planned=len(found), leaks=("<pre>",))


# -- JUnit ---------------------------------------------------------------------------------------------------------

# What junit-10.xsd of Jenkins' xUnit plugin allows, as far as it goes: attributes that must and may be, children.
GRAMMAR: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"skipped", "time", "timestamp", "hostname", "id", "package"},
        {"testcase", "properties", "system-out", "system-err"},
    ),
    "testcase": ({"name"}, {"time", "classname"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
TIME = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]*)?")


def valid(text: str) -> ElementTree.Element:
    """The document, which keeps to the grammar."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    for element in root.iter():
        must, may, children = GRAMMAR[element.tag]
        assert must <= set(element.attrib) <= must | may, element.tag
        assert {child.tag for child in element} <= children, element.tag
        assert TIME.fullmatch(element.get("time", "0"))
        if element.tag == "testsuite":
            cases = element.findall("testcase")
            counts = {name: sum(c.find(tag) is not None for c in cases) for name, tag in COUNTED.items()}
            assert counts == {name: int(element.attrib[name]) for name in COUNTED}
            assert int(element.attrib["tests"]) == len(cases)
    return root


COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


@pytest.mark.parametrize("report", [REPORT, hostile(), Report(vendor="v", planned=0, outcomes=())])
def test_junit_keeps_to_its_schema(report: Report) -> None:
    root = valid(junit(report))
    names = [case.get("name") for case in root.iter("testcase") if case.get("classname") != "conformance.run"]
    assert len(names) == len(set(names)) == len(report.outcomes)


def test_junit_says_what_became_of_each_case() -> None:
    root = valid(junit(REPORT))
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "8", "failures": "2", "errors": "2",
    }  # fmt: skip
    assert [suite.get("name") for suite in root] == ["diopiadd", "diopiconv", "diopirelu", "the run"]
    told = {
        case.attrib["name"]: [(child.tag, child.get("type"), child.get("message") or child.text) for child in case]
        for case in root.iter("testcase")
    }
    assert told["add/f32/0"] == []
    assert told["relu/f32/0"] == [
        ("failure", "fail", "out[3] is 1.0, expected 0.0, max error 1"),
        (
            "system-out",
            None,
            "relu/f32/0: out[3] is 1.0, expected 0.0, max error 1\n"
            "diopi-conformance repro relu/f32/0 --vendor chip\n",
        ),
    ]
    assert told["relu/f64/0"][0] == ("error", "crash", "killed by SIGSEGV")
    assert told["conv/f32/0"] == [("skipped", "not-implemented", "the library has no such function")]
    assert told["conv/f32/1"] == [("skipped", "fail", "known: bug 12: out[0] is nan, max error inf")]
    assert told["1 of 8 planned cases did not run"] == [("error", "run", "1 of 8 planned cases did not run")]


PASSED = (outcome("a/f32/0"),)


@pytest.mark.parametrize(
    "report",
    [
        Report(vendor="v", planned=1, outcomes=PASSED),
        Report(vendor="v", planned=2, outcomes=PASSED),
        Report(vendor="v", planned=1, outcomes=PASSED, leaks=("4 bytes",)),
        Report(vendor="v", planned=1, outcomes=OUTCOMES[5:6]),
        Report(vendor="v", planned=2, outcomes=(*PASSED, *OUTCOMES[5:6])),
        Report(vendor="v", planned=2, outcomes=(*PASSED, *OUTCOMES[5:6]), strict=True),
        Report(vendor="v", planned=2, outcomes=(*PASSED, outcome("b/f32/0", Verdict.LEAK))),
        Report(vendor="v", planned=2, outcomes=(*PASSED, OUTCOMES[6])),
    ],
)
def test_junit_fails_where_the_run_does(report: Report) -> None:
    root = valid(junit(report))
    assert (root.get("failures"), root.get("errors")) == ("0", "0") or report.exit_code == 1
    assert (root.get("failures"), root.get("errors")) != ("0", "0") or report.exit_code == 0


# -- CSV -----------------------------------------------------------------------------------------------------------


def test_csv_has_one_line_for_each_case() -> None:
    lines = list(csv.DictReader(io.StringIO(table(hostile()))))
    assert [line["id"] for line in lines] == sorted(o.id for o in hostile().outcomes)
    by_id = {line["id"]: line for line in lines}
    assert by_id["relu/i8/0"]["message"] == HOSTILE
    assert set(by_id["add/f32/0"]) == set(COLUMNS)
    wanted = {
        "function": "diopirelu", "family": "activation", "elements": "f16", "view": "contiguous", "change": "zero",
        "verdict": "fail", "output": "out", "error": "2.5", "ulp": "",
    }  # fmt: skip
    assert {name: by_id["relu/f16/zero/1"][name] for name in wanted} == wanted
    assert (by_id["conv/f32/0"]["models"], by_id["conv/f32/1"]["known"]) == ("resnet18 unet", "bug 12")


# -- what changed --------------------------------------------------------------------------------------------------


def changed(before: Outcome | None, after: Outcome | None, **strict: bool) -> dict[str, list[str]]:
    old = Report(vendor="v", planned=1, outcomes=(before,) if before else ())
    new = Report(vendor="v", planned=1, outcomes=(after,) if after else (), **strict)
    found = differences(new, old)
    return {name: [change.text for change in changes] for name, changes in found.sections()}


FAILED = outcome("a/f32/0", Verdict.FAIL, message="out[1] is 0", error=1.0)
GOOD = outcome("a/f32/0", error=1e-6, ulp=1.0)
LACKS = outcome("a/f32/0", Verdict.NOT_IMPLEMENTED, message="none")


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (GOOD, FAILED, {"newly failing": ["pass -> fail: out[1] is 0"]}),
        (LACKS, FAILED, {"newly failing": ["not-implemented -> fail: out[1] is 0"]}),
        (FAILED, GOOD, {"newly passing": ["fail -> pass"]}),
        (replace(FAILED, known="bug"), GOOD, {"newly passing": ["fail (known) -> pass"]}),
        (replace(FAILED, known="bug"), FAILED, {"newly failing": ["out[1] is 0, max error 1 -> 1"]}),
        (GOOD, LACKS, {"newly lacking": ["pass -> not-implemented: none"]}),
        (FAILED, LACKS, {"newly lacking": ["fail -> not-implemented: none"]}),
        (FAILED, replace(FAILED, message="out[7] is 5", error=1.1), {}),
        (FAILED, replace(FAILED, error=3.0), {"changed": ["out[1] is 0, max error 1 -> 3"]}),
        (FAILED, outcome("a/f32/0", Verdict.CRASH, message="dead"), {"changed": ["fail -> crash: dead"]}),
        (GOOD, replace(GOOD, error=1.1e-6), {}),
        (GOOD, replace(GOOD, ulp=2.0), {"changed": ["max error 1e-06, 1 ULP -> 1e-06, 2 ULP"]}),
        (GOOD, replace(GOOD, error=0.0, ulp=0.0), {"changed": ["max error 1e-06, 1 ULP -> 0, 0 ULP"]}),
        (GOOD, None, {"gone": ["pass"]}),
        (None, FAILED, {"new": ["fail"]}),
        (GOOD, GOOD, {}),
    ],
)
def test_differences_are_of_one_kind_each(before: Any, after: Any, found: dict[str, list[str]]) -> None:
    assert changed(before, after) == found


def test_what_is_lacking_fails_where_the_new_run_is_strict() -> None:
    assert changed(GOOD, LACKS, strict=True) == {"newly failing": ["pass -> not-implemented: none"]}


# -- the page ------------------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        name = self.tags[-1][1].get("id") or self.tags[-1][0] if self.tags else ""
        self.text[str(name)] = self.text.get(str(name), "") + data


def parsed(report: Report, against: Report | None = None) -> _Page:
    found = _Page()
    found.feed(page(report, None if against is None else differences(report, against)))
    return found


def test_the_page_escapes_everything() -> None:
    found = parsed(hostile(), against=replace(hostile(), outcomes=OUTCOMES[:2]))
    tags = [tag for tag, _ in found.tags]
    assert tags.count("script") == 2 and "i" not in {t for t, a in found.tags if "class" not in a}
    data = json.loads(found.text["data"])
    assert data["vendor"] == "chip <&>" and HOSTILE in data["tables"]["message"]
    assert "alert" not in found.text["script"]


def test_the_page_needs_nothing_from_elsewhere() -> None:
    found = parsed(REPORT)
    for tag, attributes in found.tags:
        for name in ("src", "href", "action", "srcset"):
            link = attributes.get(name)
            assert link is None or link.startswith(("#", "data:")), (tag, link)
    assert "url(" not in found.text["style"] and "@import" not in found.text["style"]
    (policy,) = (a["content"] for tag, a in found.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None and policy.startswith("default-src 'none';")


def test_the_page_opens_on_what_failed_or_on_a_summary() -> None:
    def headings(report: Report) -> list[str]:
        return re.findall("<h2[^>]*>(.*?)</h2>", page(report))

    assert headings(REPORT)[0] == "Failures by function and cause"
    passed = tuple(o for o in OUTCOMES if o.verdict is Verdict.PASS)
    good = Report(vendor="v", planned=len(passed), outcomes=passed, axes=REPORT.axes)
    assert headings(good)[0] == "Functions by element type"
    header = page(good).partition("<header>")[2].partition("</header>")[0]
    assert f"<p>{len(passed)} of {len(passed)} passed" in header


def test_the_data_of_the_page_is_that_of_the_report() -> None:
    data = json.loads(page_data(REPORT))
    index = data["id"].index("relu/f16/zero/1")
    tables = data["tables"]
    found = {name: tables[name][data[name][index]] for name in tables}
    assert found == {
        "function": ["diopirelu", "relu", "activation"],
        "elements": ["f16"],
        "words": ["zero"],
        "message": "out[12] is 2.5, expected 0.0",
        "kind": "bad",
        "verdict": "fail",
    }
    kinds = [tables["kind"][kind] for kind in data["kind"]]
    assert dict(zip(data["id"], kinds, strict=True)) == {
        "add/f16/strided/0": "pass", "add/f32/0": "pass", "conv/f32/0": "lacks", "conv/f32/1": "known",
        "relu/f16/zero/1": "bad", "relu/f32/0": "bad", "relu/f64/0": "bad",
    }  # fmt: skip
    assert data["ulp"][data["id"].index("conv/f32/1")] == "inf"


def test_thirty_two_thousand_cases_stay_a_small_page() -> None:
    verdicts = (Verdict.PASS, Verdict.PASS, Verdict.NOT_IMPLEMENTED, Verdict.FAIL)
    outcomes = tuple(
        replace(
            outcome(f"f{i % 538}/f32/strided/special/{i}", verdicts[i % 4]),
            error=i / 7, ulp=i / 11, seconds=i / 13, message=f"out[{i}] is {i / 3}, expected 1" if i % 4 == 3 else "",
        )
        for i in range(32_000)
    )  # fmt: skip
    axes = {o.id: AXES["add/f16/strided/0"] for o in outcomes}
    text = page(Report(vendor="v", planned=32_000, outcomes=outcomes, axes=axes))
    assert len(text.encode()) < 6_000_000


def test_bins_of_the_histogram() -> None:
    found = histogram([0.0, 0.0, 0.5, 0.6, 1.0, 3.0, 5000.0, float("inf")])
    assert {bar.label: bar.count for bar in found.bars if bar.count} == {
        "exact": 2, "0 to 0.5": 1, "0.5 to 1": 2, "2 to 4": 1, "above 1024": 2,
    }  # fmt: skip
    assert max(bar.width for bar in found.bars) == found.bars[0].width == 560
    assert histogram([]).total == 0


# -- the command ---------------------------------------------------------------------------------------------------


def test_the_command_writes_every_form_and_tells_what_changed(tmp_path: Path) -> None:
    write_report(REPORT, tmp_path / "new.json")
    good = replace(OUTCOMES[2], verdict=Verdict.PASS, message="", error=0.0)
    write_report(replace(REPORT, outcomes=(*OUTCOMES[:2], good, *OUTCOMES[3:])), tmp_path / "old.json")
    files = {name: tmp_path / "made" / f"report.{name}" for name in ("html", "junit", "csv")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    words = ["report", str(tmp_path / "new.json"), "--against", str(tmp_path / "old.json"), *options]
    found = CliRunner().invoke(cli, words)
    assert found.exit_code == 1
    assert found.output.splitlines()[-2:] == [
        "newly failing: 1",
        "  relu/f32/0: pass -> fail: out[3] is 1.0, expected 0.0",
    ]
    valid(files["junit"].read_text(encoding="utf-8"))
    assert len(files["csv"].read_text(encoding="utf-8").splitlines()) == 8
    assert "newly failing: 1" in files["html"].read_text(encoding="utf-8")
    document = json.loads(CliRunner().invoke(cli, [*words, "--format", "json"]).stdout)
    assert document["changes"]["newly_failing"] == [
        {"id": "relu/f32/0", "change": "pass -> fail: out[3] is 1.0, expected 0.0"}
    ]


def test_the_same_report_gives_the_same_bytes() -> None:
    backwards = replace(REPORT, outcomes=tuple(reversed(OUTCOMES)))
    assert (junit(REPORT), table(REPORT), page_data(REPORT)) == (
        junit(backwards), table(backwards), page_data(backwards),
    )  # fmt: skip
    assert page(REPORT) == page(REPORT)


def test_wrong_paths_end_in_a_sentence(tmp_path: Path) -> None:
    write_report(REPORT, tmp_path / "new.json")
    (tmp_path / "other.json").write_text('{"version": 1}', encoding="utf-8")
    cases = {
        ("--against", tmp_path / "nowhere.json"): "nowhere.json cannot be read as a report",
        ("--against", tmp_path / "other.json"): "is no report of this version; run the cases again",
        ("--html", tmp_path / "new.json" / "page.html"): "page.html cannot be written",
    }
    for (option, path), says in cases.items():
        found = CliRunner().invoke(cli, ["report", str(tmp_path / "new.json"), option, str(path)])
        assert (found.exit_code, says in " ".join(found.output.split())) == (2, True), found.output
