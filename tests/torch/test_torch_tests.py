"""The runner of tests in torch's form: outcomes, processes that die or hang, the list of skips, and a few suites."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("expecttest")  # torch's test classes import it

from tools.torch_tests.skips import SkipsError, outdated, read_skips

ROOT = Path(__file__).resolve().parents[2]

PROBE = """
import os, time, torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, onlyCUDA
from torch.testing._internal.common_utils import TestCase


class TestProbe(TestCase):
    def test_a_right(self, device):
        self.assertEqual(torch.ones(2, device=device).device.type, "dipu")

    def test_b_dies(self, device):
        os.abort()

    def test_c_wrong(self, device):
        self.assertEqual(torch.ones(2, device=device), torch.zeros(2, device=device))

    def test_d_hangs(self, device):
        time.sleep(60)

    def test_e_known(self, device):
        raise RuntimeError("known")

    @onlyCUDA
    def test_f_elsewhere(self, device):
        pass


class TestHost(TestCase):
    def test_host(self):
        pass


instantiate_device_type_tests(TestProbe, globals())
"""
SKIPS = """
- {test: test_probe.TestProbeDIPU.test_e_*, reason: raises what is known}
- {test: test_probe.TestProbeDIPU.test_a_*, reason: it passes}
- {test: test_probe.TestProbeDIPU.test_z_*, reason: it is not there}
"""


def run(libraries: Path, out: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    environment = {**os.environ, "DIPU_LIBRARY_DIR": str(libraries), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "conformance"), str(ROOT / "python/torch_dipu")])
    command = [sys.executable, "-m", "tools.torch_tests", "--out", str(out), "--jobs", "1", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    return done, report


def test_every_outcome(libraries: Path, tmp_path: Path) -> None:
    (tmp_path / "test_probe.py").write_text(PROBE)
    (tmp_path / "test_broken.py").write_text("raise ImportError('nothing here')")
    skips = tmp_path / "skips.yaml"
    skips.write_text(SKIPS)
    words = ["--tests", str(tmp_path), "test_probe", "test_broken", "--skips", str(skips), "--timeout", "5"]
    done, report = run(libraries, tmp_path / "out.json", *words)
    assert done.returncode == 1, done.stderr
    found = {test.get("test", "").rpartition(".")[2]: test for test in report["tests"]}
    assert {name: test["outcome"] for name, test in found.items()} == {
        "test_a_right_dipu": "passed",
        "test_b_dies_dipu": "crashed",
        "test_c_wrong_dipu": "failed",
        "test_d_hangs_dipu": "timed out",
        "test_e_known_dipu": "listed",
        "test_f_elsewhere_dipu": "skipped",
        "": "never tested",
    }
    assert found["test_e_known_dipu"]["reason"] == "raises what is known"
    assert found["test_f_elsewhere_dipu"]["reason"] == "Only runs on cuda" and "nothing here" in found[""]["reason"]
    assert "Tensor-likes are not close!" in found["test_c_wrong_dipu"]["reason"]
    assert len(report["outdated"]) == 2 and report["files"]["test_broken"] == {"never tested": 1}
    assert f"{skips}:3:3: 'test_probe.TestProbeDIPU.test_a_right_dipu' passed: remove or narrow" in done.stdout
    assert f"{skips}:4:3: no test is called 'test_probe.TestProbeDIPU.test_z_*'" in done.stdout


def test_a_part_of_the_suites(libraries: Path, tmp_path: Path) -> None:
    words = ["view_ops", "modules", "--only", "*.test_views_of_views_*", "--only", "*.test_state_nn_Linear_*"]
    done, report = run(libraries, tmp_path / "out.json", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["files"] == {"view_ops": {"passed": 1}, "modules": {"passed": 1}}


def test_names_that_are_none(libraries: Path, tmp_path: Path) -> None:
    done, _ = run(libraries, tmp_path / "out.json", "no_such_suite")
    assert done.returncode == 2 and "has no file 'no_such_suite.py'" in done.stderr
    done, _ = run(libraries, tmp_path / "out.json", "--tests", str(tmp_path))
    assert done.returncode == 2 and "is not the folder `test` of PyTorch" in done.stderr


def test_the_published_list_is_right() -> None:
    entries = read_skips(ROOT / "tools" / "torch_tests" / "skips.yaml")
    assert entries and all(entry.reason for entry in entries)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {test: a.B.c}", "the entry lacks its 'reason'"),
        ("- {test: a.B.c, reason: x, why: y}", "an entry has no 'why'"),
        ("- {test: '*.B.c', reason: x}", "is not of the form FILE.CLASS.TEST"),
        ("- {test: a.B.c, reason: x}\n- {test: a.B.c, reason: y}", "stands at"),
        ("test: a.B.c", "a list is expected here"),
    ],
)
def test_a_list_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "skips.yaml"
    path.write_text(text)
    with pytest.raises(SkipsError, match=message) as caught:
        read_skips(path)
    assert str(caught.value).startswith(str(path))


def test_entries_that_are_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "skips.yaml"
    path.write_text("- {test: a.B.c*, reason: x}\n- {test: a.B.d, reason: x}\n- {test: other.B.d, reason: x}")
    said = outdated(read_skips(path), {"a.B.c1": "listed", "a.B.c2": "passed"}, frozenset({"a"}))
    assert [line.partition(": ")[2] for line in said] == [
        "'a.B.c2' passed: remove or narrow 'a.B.c*'",
        "no test is called 'a.B.d': remove the entry",
    ]
