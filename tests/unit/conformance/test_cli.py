"""The command line: what it prints, writes and exits with."""

import itertools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_conformance.cli import cli
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.report import Report, write_report


def invoke(*args: object):
    return CliRunner().invoke(cli, [str(a) for a in args])


def outcome(verdict: Verdict, case_id: str = "a/f32/0") -> Outcome:
    return Outcome(id=case_id, function="diopiA", op="a", verdict=verdict)


def report(*verdicts: Verdict, planned: int | None = None, strict: bool = False) -> Report:
    outcomes = tuple(outcome(v, f"a/{i}") for i, v in enumerate(verdicts))
    return Report(vendor="v", planned=planned or len(outcomes), outcomes=outcomes, strict=strict)


def test_plan_lists_what_the_filters_leave(plan_path):
    found = invoke("plan", "--vendor", "v", "--plan", plan_path, "--op", "neg", "--view", "strided")
    assert found.exit_code == 0
    listed = found.stdout.split()
    assert listed and all(case_id.startswith("neg/") and "strided" in case_id.split("/") for case_id in listed)
    lines = invoke("plan", "--vendor", "v", "--plan", plan_path, "--id", "exp/*", "--format", "json").stdout
    assert {json.loads(line)["function"] for line in lines.splitlines()} == {"diopiExp"}


def test_json_tells_what_a_case_is_made_of(plan_path):
    found = invoke("plan", "--vendor", "v", "--plan", plan_path, "--op", "exp", "--dtype", "f32", "--format", "json")
    entry = json.loads(found.stdout.splitlines()[0])
    facts = {name: entry[name] for name in ("function", "dtypes", "shapes", "values", "origin", "models")}
    assert facts == {
        "function": "diopiExp",
        "dtypes": {"out": "f32", "input": "f32"},
        "shapes": {"input": [6, 7]},
        "values": {},
        "origin": "row",
        "models": [],
    }


def test_long_names_of_types_and_families_filter_too(plan_path):
    def listed(*args: str) -> list[str]:
        return invoke("plan", "--vendor", "v", "--plan", plan_path, *args).stdout.split()

    assert listed("--dtype", "bfloat16") == listed("--dtype", "bf16") != []
    assert listed("--family", "topic") == listed("--topic", "topic") == listed()


def test_shards_part_the_cases(plan_path):
    def listed(*args: str) -> list[str]:
        return invoke("plan", "--vendor", "v", "--plan", plan_path, *args).stdout.split()

    parts = [listed("--shard", f"{i}/3") for i in (1, 2, 3)]
    assert sorted(itertools.chain(*parts)) == sorted(listed()) and all(parts)


def test_only_what_failed_runs_again(plan_path, tmp_path):
    ids = ["neg/f32/0", "neg/f32/1"]
    outcomes = (outcome(Verdict.FAIL, ids[0]), outcome(Verdict.PASS, ids[1]))
    write_report(Report(vendor="v", planned=2, outcomes=outcomes), tmp_path / "report.json")
    found = invoke("plan", "--vendor", "v", "--plan", plan_path, "--failed", tmp_path / "report.json")
    assert found.stdout.split() == [ids[0]]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--shard", "4/3"], "'4/3' is not I/N"),
        (["--failed", "/nowhere"], "cannot be read as a report"),
        (["--op", "nothing"], "the filters leave no case"),
        (["--libraries", "/nowhere"], "build it with 'make build IMPL=v'"),
    ],
)
def test_wrong_usage_ends_in_a_sentence(plan_path, args, says):
    found = invoke("run", "--vendor", "v", "--plan", plan_path, *args)
    assert found.exit_code == 2
    assert says in " ".join(found.output.split())


def test_a_missing_or_damaged_plan_ends_in_a_sentence(tmp_path):
    missing = invoke("plan", "--vendor", "v", "--plan", tmp_path / "plan.json")
    assert (missing.exit_code, "diopigen conformance" in missing.output) == (2, True)
    (tmp_path / "plan.json").write_text("{")
    assert "is damaged" in invoke("plan", "--vendor", "v", "--plan", tmp_path / "plan.json").output


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("vendor",), 1, "'vendor': Input should be a valid string"),
        (("dtypes", "f32"), "f32", "'dtypes.f32': Input should be a valid tuple"),
        (("functions", "diopiNeg", "params"), "input", "string indices must be integers, not 'str'"),
        (
            ("functions", "diopiNeg", "params", 1, "enumerators"),
            "x",
            "'functions.diopiNeg.params.1.enumerators': Input",
        ),
        (("functions", "diopiNeg", "tolerance"), {"f32": 1}, "'functions.diopiNeg.tolerance.f32': Input should be"),
        (("functions", "diopiNeg", "references"), "neg", "'functions.diopiNeg.references': Input should be a valid"),
        (("cases", 0, "dtypes"), [], "'cases.0.dtypes': Input should be a valid dictionary"),
        (("cases", 0, "dtypes", "input"), "f31", "'input' of the case '{id}' is of no dtype"),
        (("cases", 0, "values", "input"), "8", "'input' of the case '{id}' has no shape"),
        (("cases", 0, "values", "input"), [-1], "'input' of the case '{id}' has no shape"),
        (("cases", 0, "view"), None, "'cases.0.view': Input should be a valid string"),
        (("cases", 0, "function"), "diopiNag", "there is no function 'diopiNag'"),
        (("cases", 0, "id"), "neg", "the case 'neg' does not name its elements"),
        (("cases", 0, "dtypes", "inptu"), "f32", "'inptu' of the case '{id}' is no tensor of the function"),
        (("functions", "diopiNeg", "plain"), "diopiNag", "'diopiNeg' needs the function 'diopiNag', which does not"),
        (("functions", "diopiNeg", "params", 1, "of"), "inptus", "'input' of 'diopiNeg' counts 'inptus', which is no"),
        (("functions", "diopiNeg", "backward"), {"grads": {}}, "'functions.diopiNeg.backward.grad_outputs': Field"),
        (
            ("functions", "diopiNeg", "backward"),
            {"grad_outputs": {}, "keeps": {}, "grads": {"input": "out"}},
            "'' has no parameter 'out'",
        ),
        (("functions", "diopiNeg", "references", 0, "returns"), {"result": 0}, "'diopiNeg' has no parameter 'result'"),
    ],
)
def test_a_plan_with_a_value_of_another_type_ends_in_a_sentence(plan_path, tmp_path, place, value, says):
    document = json.loads(plan_path.read_text(encoding="utf-8"))
    document["cases"] = [case for case in document["cases"] if case["function"] == "diopiNeg"]
    holder = document
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    (tmp_path / "changed.json").write_text(json.dumps(document), encoding="utf-8")
    found = invoke("plan", "--vendor", "v", "--plan", tmp_path / "changed.json")
    assert found.exit_code == 2
    said = " ".join(found.output.split())
    assert f"changed.json is damaged ({says.format(id=document['cases'][0]['id'])}" in said
    assert said.endswith("write it again with 'diopigen conformance'")


def test_a_run_writes_its_report_and_shows_it_again(plan_path, runtime, faulty, tmp_path):
    vendor = faulty("drops_tail")
    out = tmp_path / "report.json"
    args = ("--vendor", "v", "--plan", plan_path, "--libraries", vendor.parent, "--runtime", runtime, "--out", out)
    found = invoke("run", *args, "--op", "neg", "--id", "neg/f32/[0-9]")
    assert found.exit_code == 1
    assert "neg/f32/0" in found.output
    again = invoke("report", out, "--format", "summary")
    assert again.exit_code == 1
    assert again.output.startswith("0 of 2 passed (0 of them trivial), 2 fail")


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (report(Verdict.PASS, Verdict.NOT_IMPLEMENTED), 0),
        (report(Verdict.PASS, Verdict.NOT_IMPLEMENTED, strict=True), 1),
        (report(Verdict.PASS, Verdict.FAIL), 1),
        (report(Verdict.PASS, Verdict.UNSOUND), 1),
        (report(Verdict.PASS, planned=2), 1),
        (report(Verdict.NOT_IMPLEMENTED), 1),
    ],
)
def test_exit_codes(found, code):
    assert found.exit_code == code


def test_an_interrupt_leaves_a_report_and_no_process(plan_path, runtime, faulty, tmp_path):
    out = tmp_path / "report.json"
    libraries = ["--libraries", str(faulty("hangs").parent), "--runtime", str(runtime), "--out", str(out)]
    cases = ["--id", "exp/f32/0", "--id", "neg/f32/0"]
    command = [sys.executable, "-m", "diopi_conformance.cli", "run", "--vendor", "v", "--plan", str(plan_path)]
    process = subprocess.Popen(
        [*command, *libraries, *cases],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells switch it off in the background
    )
    deadline = time.monotonic() + 60
    while not any(map(_calls, workers := _workers(process.pid))) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 130
    deadline = time.monotonic() + 10
    while (left := [pid for pid in workers if _runs(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers and not left
    report = json.loads(out.read_text())
    assert report["planned"] == 2
    assert {o["verdict"] for o in report["outcomes"]} <= {"pass"}


def _workers(pid: int) -> list[int]:
    """What the process started, and what that started."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        found.extend(children)
        for child in children:
            found.extend(_workers(child))
    return found


def _calls(pid: int) -> bool:
    """Whether the process is one that calls the vendor's functions."""
    try:
        return b"diopi_conformance.process.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
