"""Cases as pytest items."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

Session = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def session(plan_path: Path, runtime: Path, faulty: Callable[[str], Path], tmp_path: Path) -> Session:
    """Runs pytest with the plugin against a vendor with one fault, in an empty folder, on rows of schemas."""

    def run(fault: str, *args: object) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "session"
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "pytest", "-p", "diopi_conformance.pytest_plugin", "-c", "/dev/null"]
        command += ["-p", "no:cacheprovider", "--rootdir", folder, "--diopi-vendor", "v", "--diopi-plan", plan_path]
        command += ["--diopi-libraries", faulty(fault).parent, "--diopi-runtime", runtime, "--diopi-origin", "row"]
        words = [str(word) for word in (*command, *args)]
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)

    return run


NEG = ("-m", "dtype_f32 and view_contiguous", "--diopi-id", "neg/*")


def results(path: Path) -> dict[str, str]:
    """What became of each test of a JUnit report: the tag of its result, or "passed"."""
    cases = ElementTree.parse(path).iter("testcase")
    return {c.attrib["name"]: next((r.tag for r in c if r.tag != "properties"), "passed") for c in cases}


def test_a_right_library_passes_and_what_it_lacks_is_skipped(session, plan, tmp_path):
    junit = tmp_path / "junit.xml"
    found = session("none", "-m", "dtype_f32", "--junitxml", junit)
    assert found.returncode == 0, found.stdout
    expected = {c.id: "skipped" if c.function == "diopiSin" else "passed" for c in plan.cases if c.elements == "f32"}
    assert results(junit) == expected


def test_a_fault_fails_with_its_message_alone(session):
    found = session("writes_behind", *NEG, "--diopi-id", "neg/f32/0")
    assert found.returncode == 1
    assert "fail: bytes around 'out' were overwritten" in found.stdout
    assert "pytest_plugin.py" not in found.stdout


def test_with_strict_what_is_lacking_fails(session):
    found = session("none", "--diopi-strict", "--diopi-id", "sin/f32/0")
    assert found.returncode == 1 and "not-implemented: the library has no such function" in found.stdout


def test_a_case_is_chosen_by_its_node(session, plan_path):
    found = session("none", f"{plan_path}::neg/f32/0", "-v")
    assert found.returncode == 0 and "neg/f32/0 PASSED" in found.stdout and "1 passed" in found.stdout


def test_known_failures_are_expected_and_missed(session, tmp_path):
    known = tmp_path / "known.yaml"
    known.write_text("- id: neg/f32/0\n  reason: the chip is young\n  expires: 2999-01-01\n")
    one = ("--diopi-id", "neg/f32/0", "--diopi-known", known)
    found = session("drops_tail", *one, "-rx")
    assert found.returncode == 0 and "1 xfailed" in found.stdout and "the chip is young (fail: " in found.stdout
    found = session("none", *one)
    assert found.returncode == 1 and "'neg/f32/0' now passes in all its 1 cases: remove the entry" in found.stdout


def test_processes_of_xdist_share_the_cases(session, plan, tmp_path):
    junit = tmp_path / "junit.xml"
    found = session("crashes", "-n", "2", "-m", "dtype_f32 and view_contiguous", "--junitxml", junit)
    assert found.returncode == 1, found.stdout
    chosen = [c for c in plan.cases if c.elements == "f32" and c.view == "contiguous"]
    words = {"diopiSin": "skipped", "diopiNeg": "failure", "diopiExp": "passed"}
    assert results(junit) == {c.id: words[c.function] for c in chosen}
    assert "crash: killed by SIGSEGV" in found.stdout


def test_what_cannot_run_ends_in_a_sentence(session, tmp_path):
    found = session("none", "--diopi-data", tmp_path)
    assert found.returncode != 0 and "there are no results in" in found.stdout + found.stderr


def test_without_a_vendor_the_plugin_does_nothing(tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "diopi_conformance.pytest_plugin", "-c", "/dev/null"]
    found = subprocess.run([*command, "--rootdir", tmp_path], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0 and "1 passed" in found.stdout
