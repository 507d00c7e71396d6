"""`op-tools torch-tests` on dipu: outcomes, processes that die or hang, the list of skips, and a few suites."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("expecttest")  # torch's test classes import it


PROBE = """
import os, time, warnings, torch
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

    def test_g_warns(self, device):
        with warnings.catch_warnings(record=True) as seen:
            torch.ones(2, device=device)[torch.tensor([1, 0], dtype=torch.uint8, device=device)]
        self.assertEqual(len(seen), 1)


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


def test_every_outcome(torch_tests: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "test_probe.py").write_text(PROBE)
    (tmp_path / "test_broken.py").write_text("raise ImportError('nothing here')")
    skips = tmp_path / "skips.yaml"
    skips.write_text(SKIPS)
    files = ["--tests", str(tmp_path), "--suite", "test_probe", "--suite", "test_broken"]
    done, report = torch_tests(*files, "--skips", str(skips), "--timeout", "5")
    assert done.returncode == 1, done.stderr
    found = {test.get("test", "").rpartition(".")[2]: test for test in report["tests"]}
    assert {name: test["outcome"] for name, test in found.items()} == {
        "test_a_right_dipu": "passed",
        "test_b_dies_dipu": "crashed",
        "test_c_wrong_dipu": "failed",
        "test_d_hangs_dipu": "timed out",
        "test_e_known_dipu": "listed",
        "test_f_elsewhere_dipu": "skipped",
        "test_g_warns_dipu": "passed",
        "": "never tested",
    }
    assert found["test_e_known_dipu"]["reason"] == "raises what is known"
    assert found["test_f_elsewhere_dipu"]["reason"] == "Only runs on cuda" and "nothing here" in found[""]["reason"]
    assert "Tensor-likes are not close!" in found["test_c_wrong_dipu"]["reason"]
    assert len(report["outdated"]) == 2 and report["suites"]["test_broken"] == {"never tested": 1}
    assert f"{skips}:3:3: 'test_probe.TestProbeDIPU.test_a_right_dipu' passed: remove or narrow" in done.stdout
    assert f"{skips}:4:3: no test is called 'test_probe.TestProbeDIPU.test_z_*'" in done.stdout


def test_a_part_of_the_suites(torch_tests: Callable[..., Any]) -> None:
    suites = ["--suite", "view_ops", "--suite", "modules"]
    done, report = torch_tests(*suites, "--only", "*.test_views_of_views_*", "--only", "*.test_state_nn_Linear_*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["suites"] == {"view_ops": {"passed": 1}, "modules": {"passed": 1}}


def test_error_inputs_are_refused_in_the_cpus_words(torch_tests: Callable[..., Any]) -> None:
    slices = ("layer_norm", "gather", "scatter", "softshrink", "eye", "normal_in_place", "uniform")
    done, report = torch_tests(
        "--suite", "error_inputs", *(w for s in slices for w in ("--only", f"*.test_errors_*{s}_dipu"))
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["suites"]["error_inputs"]["passed"] >= len(slices)


@pytest.mark.deep("frameworks", "the error inputs of some operators")
def test_error_inputs_of_every_operator(torch_tests: Callable[..., Any]) -> None:
    done, _ = torch_tests("--suite", "error_inputs")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("suite", ["unusual_calls", "compiled_calls"])
def test_unusual_calls_of_some_operators(torch_tests: Callable[..., Any], suite: str) -> None:
    done, report = torch_tests("--suite", suite, "--only", "*s_mm_dipu", "--only", "*_cumsum_dipu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["suites"][suite]["passed"] > 4


@pytest.mark.deep("frameworks", "the calls of two operators, and tests/torch/test_unusual_calls.py")
@pytest.mark.parametrize("suite", ["unusual_calls", "compiled_calls"])
def test_unusual_calls_of_every_operator(torch_tests: Callable[..., Any], suite: str) -> None:
    done, _ = torch_tests("--suite", suite)
    assert done.returncode == 0, done.stdout + done.stderr
