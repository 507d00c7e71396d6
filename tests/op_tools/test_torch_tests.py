"""The command `op-tools torch-tests` on the CPU: suites, outcomes, parts of a run, interruptions, what is refused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("expecttest")  # torch's test classes import it

from torch.testing._internal import common_utils

from op_tools.cli import main
from op_tools.torch_tests.device import NoDevice, start
from op_tools.torch_tests.outcome import Outcome
from op_tools.torch_tests.report import expected
from op_tools.torch_tests.shard import BadShard, Shard, shard_of
from op_tools.torch_tests.skips import SkipsError, outdated, published, read_skips
from tests.op_tools.conftest import Run
from tests.op_tools.processes_gone import ended

FORM = """
import os, subprocess, sys, time, torch
from pathlib import Path
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase

class TestProbe(TestCase):
{tests}

instantiate_device_type_tests(TestProbe, globals())
"""
# A test that never ends, as does a process that it has started.
HANGS = """
    def test_c_hangs(self, device):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(os.environ["PROBE"]).write_text(f"{os.getpid()} {child.pid}")
        time.sleep(600)
"""


RUNS = pytest.mark.deep("frameworks", "the command interrupted, and on two suites; parts as sets; the same on dipu")


def started(*words: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "op_tools", "torch-tests", "--jobs", "1", *words],
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*words: str, **environment: str) -> tuple[int, str, str]:
    process = started(*words, **environment)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


@pytest.fixture
def probe(tmp_path: Path) -> Callable[[str], list[str]]:
    """Writes a file of tests; the words that run it on the CPU."""

    def write(tests: str) -> list[str]:
        (tmp_path / "test_probe.py").write_text(FORM.format(tests=tests))
        return ["--device", "cpu", "--tests", str(tmp_path), "--suite", "test_probe"]

    return write


def report_of(path: Path) -> Any:
    return json.loads(path.read_text())


def outcomes(report: Any) -> dict[str, str]:
    return {test.get("test", "").rpartition(".")[2]: test["outcome"] for test in report["tests"]}


def test_own_suites_and_torchs_samples_on_the_cpu(tmp_path: Path) -> None:
    globs = ("view_ops.*.test_views_of_views_*", "opinfo.trunc.*", "opinfo.nn.functional.relu.float*")
    words = [word for glob in globs for word in ("--only", glob)]
    suites = ["--suite", "opinfo", "--suite", "view_ops", "--all-dtypes"]
    code, out, err = run("--device", "cpu", *suites, *words, OP_TOOLS_RESULTS_DIR=str(tmp_path / "results"))
    assert code == 0, out + err
    (path,) = (tmp_path / "results" / "op_torch_tests_result").iterdir()
    report = report_of(path)
    assert report["device"] == "cpu" and report["shard"] == "1/1" and report["elsewhere"] == 0
    tests = {f"{test['suite']}.{test['test']}": test for test in report["tests"]}
    assert report["suites"] == {"opinfo": {"passed": len(tests) - 1}, "view_ops": {"passed": 1}}
    assert "view_ops.TestViewRulesCPU.test_views_of_views_cpu" in tests
    assert {"opinfo.trunc.int8", "opinfo.trunc.float16", "opinfo.nn.functional.relu.float64"} <= set(tests)
    trunc = tests["opinfo.trunc.float32"]["details"]
    assert trunc["failed"] == 0 and trunc["checks"] > trunc["samples"] > 0 and trunc["fallbacks"] == {}
    lines = out.splitlines()
    assert lines[4] == "entries: 2, pass: 2, crashes: 0, without a check: 0"
    assert re.fullmatch(rf"cpu, \d+ s: {re.escape(str(path))}", lines[-1]) and len(lines) == 7
    assert err == ""


@RUNS
def test_one_that_dies_and_one_that_hangs_cost_no_other(tmp_path: Path, probe: Callable[[str], list[str]]) -> None:
    words = probe(
        """
    def test_a_right(self, device):
        self.assertEqual(device, "cpu")
        self.assertFalse(torch.backends.cudnn.allow_tf32)

    def test_b_dies(self, device):
        print("this stays out of the answers", flush=True)
        os.abort()
"""
        + HANGS
        + """
    def test_d_leaves_files(self, device):
        Path("here").write_text("")

    def test_e_right(self, device):
        self.assertFalse(Path("here").exists() and not Path(os.environ["TMPDIR"]).samefile(Path.cwd().parent))
"""
    )
    out, pids = tmp_path / "out.json", tmp_path / "pids"
    code, said, _ = run(*words, "--timeout", "3", "--out", str(out), PROBE=str(pids))
    report = report_of(out)
    assert code == 1
    assert outcomes(report) == {
        "test_a_right_cpu": "passed",
        "test_b_dies_cpu": "crashed",
        "test_c_hangs_cpu": "timed out",
        "test_d_leaves_files_cpu": "passed",
        "test_e_right_cpu": "passed",
    }
    assert said.splitlines()[:2] == [
        "CRASHED test_probe.TestProbeCPU.test_b_dies_cpu: the process ended with -6: this stays out of the answers",
        "TIMED OUT test_probe.TestProbeCPU.test_c_hangs_cpu: no answer after 3 s",
    ]
    assert all(ended(int(pid)) for pid in pids.read_text().split())


@RUNS
def test_expected_failures_are_told_by_their_reasons() -> None:
    found = [
        Outcome(suite="a", test=f"B.{number}", outcome=outcome, reason=reason)
        for number, (outcome, reason) in enumerate(
            [
                ("listed", "has no sparse tensors"),
                ("failed", "is wrong"),
                ("listed", "reads memory through ctypes"),
                ("listed", "reads memory through ctypes"),
                ("listed", "asks for a GPU"),
            ]
        )
    ]
    assert expected(found).splitlines() == [
        "expected failures, by reason:",
        "     2 reads memory through ctypes",
        "     1 asks for a GPU",
        "     1 has no sparse tensors",
    ]
    assert expected(found[1:2]) == ""


def test_parts_have_each_test_once(tmp_path: Path, probe: Callable[[str], list[str]]) -> None:
    words = probe("".join(f"    def test_{number}(self, device):\n        pass\n" for number in range(12)))
    (tmp_path / "test_broken.py").write_text("raise ImportError('nothing here')")
    skips = tmp_path / "skips.yaml"
    skips.write_text("".join(f"- {{test: test_probe.TestProbeCPU.test_{n}_cpu, reason: x}}\n" for n in (0, 99)))
    found, elsewhere, late = [], [], []
    for number in (1, 2):
        out = tmp_path / f"{number}.json"
        part = ["--suite", "test_broken", "--shard", f"{number}/2", "--skips", str(skips), "--out", str(out)]
        code, said, _ = run(*words, *part)
        report = report_of(out)
        assert code == 1 and report["shard"] == f"{number}/2"
        assert outcomes(report).pop("") == "never tested"  # what cannot be listed is in no part
        assert report["suites"]["test_broken"] == {"never tested": 1}
        assert said.splitlines()[-1].startswith(f"cpu, part {number}/2, {report['elsewhere']} tests in others, ")
        found.append({name for name, outcome in outcomes(report).items() if outcome == "passed"})
        elsewhere.append(report["elsewhere"])
        late += report["outdated"]
    assert found[0] | found[1] == {f"test_{number}_cpu" for number in range(12)} and not found[0] & found[1]
    assert elsewhere == [len(found[1]), len(found[0])] and all(found)
    gone = f"{skips}:2:3: no test is called 'test_probe.TestProbeCPU.test_99_cpu': remove the entry"
    name = "test_probe.TestProbeCPU.test_0_cpu"
    assert sorted(late) == sorted([gone, gone, f"{skips}:1:3: '{name}' passed: remove or narrow '{name}'"])


@settings(deadline=None)
@given(st.sets(st.text(min_size=1)), st.integers(1, 40))
def test_parts_are_disjoint_and_complete(tests: set[str], count: int) -> None:
    parts = [{test for test in tests if Shard(number=i, count=count).has(test)} for i in range(1, count + 1)]
    assert set().union(*parts) == tests and sum(map(len, parts)) == len(tests)


def test_parts_are_the_same_everywhere_and_alike_in_size() -> None:
    name = "view_ops.TestViewRulesDIPU.test_versions_dipu"
    assert [Shard(number=i, count=4).has(name) for i in range(1, 5)] == [False, False, True, False]
    names = [f"opinfo.entry{number}.float32" for number in range(4000)]
    sizes = [sum(map(Shard(number=i, count=8).has, names)) for i in range(1, 9)]
    assert sum(sizes) == 4000 and all(400 < size < 600 for size in sizes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5/4", "there is no part 5/4: the parts are 1/4 to 4/4"),
        ("0/4", "there is no part 0/4: the parts are 1/4 to 4/4"),
        ("1/0", "there is no part 1/0: there is one part at least, '1/1'"),
        ("2", "'2' is not of the form i/n, e.g. '2/4' for the second of four parts"),
        ("-1/2", "'-1/2' is not of the form i/n, e.g. '2/4' for the second of four parts"),
        ("a/b", "'a/b' is not of the form i/n, e.g. '2/4' for the second of four parts"),
    ],
)
def test_a_part_that_is_none(text: str, message: str) -> None:
    with pytest.raises(BadShard, match=f"^{re.escape(message)}$"):
        shard_of(text)
    done = CliRunner().invoke(main, ["torch-tests", f"--shard={text}"])
    assert done.exit_code == 2 and done.output.endswith(f"Error: Invalid value for '--shard': {message}\n")


@pytest.mark.parametrize(
    ("number", "code", "whole"), [(signal.SIGINT, 130, True), (signal.SIGTERM, 143, True), (signal.SIGINT, 130, False)]
)
def test_an_interruption(
    tmp_path: Path, probe: Callable[[str], list[str]], number: int, code: int, whole: bool
) -> None:
    right = "    def test_{}_right(self, device):\n        pass\n"
    words = probe(right.format("a") + HANGS + right.format("d"))
    out, pids = tmp_path / "out.json", tmp_path / "pids"
    if not whole:  # the import of the file hangs
        hang = "time.sleep(600)\n"
        path = tmp_path / "test_probe.py"
        path.write_text(f"import os, time\nopen({str(pids)!r}, 'w').write(str(os.getpid()))\n{hang}")
    process = started(*words, "--out", str(out), PROBE=str(pids))
    while not (pids.exists() and pids.read_text()):
        time.sleep(0.1)
        assert process.poll() is None
    process.send_signal(number)
    said, err = process.communicate(timeout=120)
    assert process.returncode == code and err == ""
    report = report_of(out)
    assert report["interrupted"] is True
    tests = {test.get("test", ""): (test["outcome"], test.get("reason")) for test in report["tests"]}
    interrupted = ("never tested", "the run was interrupted")
    if whole:
        assert tests == {
            "TestProbeCPU.test_a_right_cpu": ("passed", None),
            "TestProbeCPU.test_c_hangs_cpu": interrupted,
            "TestProbeCPU.test_d_right_cpu": interrupted,
        }
        line = "test_probe       1       0        0          0        0       0             2"
        assert line in said.splitlines()
    else:
        assert tests == {"": ("never tested", "the run was interrupted before the tests were known")}
    assert all(ended(int(pid)) for pid in pids.read_text().split())
    assert not list(tmp_path.glob(".*.part"))


def test_names_that_are_none(tmp_path: Path) -> None:
    def refused(*words: str) -> str:
        done = CliRunner().invoke(main, ["torch-tests", "--device", "cpu", *words])
        assert done.exit_code == 2
        return done.output

    known = (
        "autograd, compiled_calls, error_inputs, indexing, modules, optimizers, reductions, serialization, "
        "type_promotion, unusual_calls, view_ops"
    )
    assert refused("--suite", "views") == f"op-tools: there is no suite 'views'; the suites are {known}, opinfo\n"
    usual = "test_view_ops, test_type_promotion, test_reductions, test_indexing, test_autograd, test_serialization"
    nowhere = f"op-tools: '{tmp_path}' has none of {usual}: it is not the folder `test` of PyTorch\n"
    assert refused("--tests", str(tmp_path)) == nowhere
    for name in ("test_nn", "test_ops"):
        (tmp_path / f"{name}.py").touch()
    files = ["--tests", str(tmp_path), "--suite"]
    assert refused(*files, "test_op") == f"op-tools: '{tmp_path}' has no file 'test_op.py'; did you mean 'test_ops'?\n"
    assert refused(*files, "other") == f"op-tools: '{tmp_path}' has no file 'other.py'; it has test_nn, test_ops\n"
    (tmp_path / "nn").mkdir()
    (tmp_path / "nn" / "test_init.py").touch()
    hint = f"op-tools: '{tmp_path}' has no file 'nn/test_ini.py'; did you mean 'nn/test_init'?\n"
    assert refused(*files, "nn/test_ini") == hint
    without = refused("--suite", "view_ops", "--all-dtypes")
    assert without.endswith("Error: --all-dtypes is for the suite opinfo, which is not among those that run\n")
    counted = refused("--suite", "opinfo", "--coverage", "--device", "cpu")
    assert counted.endswith("Error: --coverage is for the device dipu: 'cpu' does not count what ran on the CPU\n")
    (tmp_path / "file").touch()
    for out in (tmp_path / "file" / "out.json", tmp_path / "file" / "below" / "out.json"):
        assert refused("--out", str(out)) == f"op-tools: {out} cannot be written: it lies below a file\n"
    skips = tmp_path / "no.yaml"
    assert refused("--skips", str(skips)) == f"op-tools: {skips} cannot be read: No such file or directory\n"


def test_devices_that_are_none(tmp_path: Path) -> None:
    out = ["--suite", "view_ops", "--out", str(tmp_path / "out.json")]
    found = "cpu, cuda" if torch.cuda.is_available() else "cpu"
    code, _, err = run("--device", "nosuch", *out)
    assert (code, err) == (2, f"op-tools: torch finds no device 'nosuch' to test here; it finds {found}\n")
    (tmp_path / "fake").mkdir()
    path = os.pathsep.join([str(tmp_path / "fake"), os.environ.get("PYTHONPATH", "")])
    (tmp_path / "fake" / "expecttest.py").write_text("raise ModuleNotFoundError('gone', name='expecttest')\n")
    code, _, err = run("--device", "cpu", *out, PYTHONPATH=path)
    assert (code, err) == (2, "op-tools: torch's tests need the package 'expecttest': pip install expecttest\n")
    assert not (tmp_path / "out.json").exists()


def test_a_backend_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def start(self) -> None:
            raise RuntimeError("no library\nand much more")

    monkeypatch.setitem(sys.modules, "torch_dipu", Broken())  # type: ignore[arg-type]
    with pytest.raises(NoDevice, match=r"^the device 'dipu' cannot be started: no library$"):
        start("dipu")
    monkeypatch.setitem(sys.modules, "torch_dipu", None)  # type: ignore[arg-type]
    with pytest.raises(NoDevice, match=r"^the device 'dipu' needs the package 'torch_dipu', which is not installed$"):
        start("dipu")


def test_what_the_environment_says_of_devices_does_not_count(tmp_path: Path, probe: Callable[[str], list[str]]) -> None:
    words = probe("    def test_a(self, device):\n        pass\n")
    out = tmp_path / "out.json"
    away = {"PYTORCH_TESTING_DEVICE_ONLY_FOR": "cuda", "PYTORCH_TESTING_DEVICE_EXCEPT_FOR": "cpu"}
    code, _, err = run(*words, "--out", str(out), **away)
    assert code == 0, err
    assert outcomes(report_of(out)) == {"test_a_cpu": "passed"}


def test_help_names_every_suite() -> None:
    text = " ".join(CliRunner().invoke(main, ["torch-tests", "--help"]).output.split())
    folder = published("dipu").parents[1] / "suites"  # type: ignore[union-attr]
    for suite in [*(path.stem for path in folder.glob("[!_]*.py")), "opinfo"]:
        assert re.search(rf"\b{suite}\b", text.partition("With --tests")[0]), suite
    assert "torch-tests" in CliRunner().invoke(main, ["--help"]).output


def test_the_published_list_is_right() -> None:
    path = published("dipu")
    assert path is not None and published("cpu") is None
    entries = read_skips(path)
    assert entries and all(entry.reason for entry in entries)


def test_entries_of_other_devices_do_not_count(tmp_path: Path) -> None:
    skips, out = tmp_path / "skips.yaml", tmp_path / "out.json"
    only = "serialization.TestSaveAndLoadCPU.test_every_dtype_cpu_bool"
    late = f"{skips}:1:3: '{only}' passed: remove or narrow '{only}'"
    for device, said in (("NVIDIA *", []), ("c*", [late])):
        skips.write_text(f"- {{test: {only}, reason: x, device: '{device}'}}")
        options = ["--suite", "serialization", "--device", "cpu", "--only", only]
        code, _, _ = run(*options, "--skips", str(skips), "--out", str(out))
        assert (code, report_of(out)["outdated"]) == (len(said), said)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- {test: a.B.c}", "the entry lacks its 'reason'"),
        ("- {test: a.B.c, reason: x, why: y}", "an entry has no 'why'"),
        ("- {test: '*.B.c', reason: x}", "is not of the form SUITE.CLASS.TEST"),
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
    tests = ("a.B.c*", "a.B.d", "other.B.d", "a.B.elsewhere")
    path.write_text("\n".join(f"- {{test: {test}, reason: x}}" for test in tests))
    found = {"a.B.c1": "listed", "a.B.c2": "passed", "a.B.elsewhere": ""}
    said = outdated(read_skips(path), found, frozenset({"a"}))
    assert [line.partition(": ")[2] for line in said] == [
        "'a.B.c2' passed: remove or narrow 'a.B.c*'",
        "no test is called 'a.B.d': remove the entry",
    ]


def test_a_summary_of_entries() -> None:
    from op_tools.torch_tests.opinfo.summary import summary

    def of(test: str, outcome: str, **details: Any) -> Outcome:
        return Outcome(suite="opinfo", test=test, outcome=outcome, details=details)

    found = [
        of("add.float32", "passed", samples=2, checks=6, failed=0, fallbacks={"aten::add (no kernel)": 3}),
        of("add.int8", "passed", samples=1, checks=2, failed=0, fallbacks={"aten::add (no kernel)": 1}),
        of("mul.float32", "passed", samples=2, checks=5, failed=0, fallbacks={}),
        of("mul.int8", "skipped", samples=0, checks=0, failed=0, fallbacks={}),
        of("nn.functional.relu.float32", "crashed"),
        of("sub.float32", "failed", samples=1, checks=3, failed=1, fallbacks={}),
        of("sub.int8", "never tested"),
        of("empty.float32", "skipped", samples=0, checks=0, failed=0, fallbacks={}),
    ]
    lines = [
        "entries: 5, pass: 2, crashes: 1, without a check: 1",
        "runs of an entry at one dtype: 7; samples: 6; checks: 16, failed: 1",
    ]
    assert summary(found, fallbacks=False).splitlines() == lines
    fallbacks = ["without a fallback: 1", "fallbacks, by entries that meet them:", "     1 aten::add (no kernel)"]
    assert summary(found, fallbacks=True).splitlines() == lines + fallbacks
    other = Outcome(suite="view_ops", test="A.b", outcome="passed")
    assert summary([other, of("sub.int8", "never tested")], fallbacks=True) == ""


def test_what_was_never_tested_hides_no_failure() -> None:
    from op_tools.torch_tests.report import failures

    found = [Outcome(suite="a", test=f"A.{n}", outcome="never tested", reason="interrupted") for n in range(80)]
    found.append(Outcome(suite="b", test="B.c", outcome="failed", reason="wrong"))
    lines = failures([*found, Outcome(suite="b", test="B.d", outcome="passed")]).splitlines()
    assert lines[:2] == ["FAILED b.B.c: wrong", "NEVER TESTED a.A.0: interrupted"]
    assert lines[-1] == "and 21 more, in the report" and len(lines) == 61


def test_tests_of_torch_are_told_what_the_device_can_do(on_dipu: Run) -> None:
    """In torch's form since 2.15: a capability that is not declared fails a test that needs it."""
    program = """
from types import SimpleNamespace
import torch_dipu
from op_tools.torch_tests.device import declare
torch_dipu.start()
words = SimpleNamespace(
    dtype=SimpleNamespace(fp8="fp8", bf16="bf16"),
    attention=SimpleNamespace(flash_attention="flash", mem_efficient_attention="efficient"),
)
base = type("Base", (), {})
declare(base, words)
print({word: asked() for word, asked in base._capabilities().items()})
"""
    done = on_dipu("-c", program)
    assert done.stdout == "{'fp8': False, 'bf16': True, 'flash': True, 'efficient': False}\n", done.stderr


CLASSIFIED = """
import torch.testing._internal.common_utils as common
from enum import Enum
if not hasattr(common, "HardwareClassification"):  # as in torch 2.14
    common.HardwareClassification = Enum("HardwareClassification", {"GENERIC": "generic", "ACCELERATOR": "accelerator"})
    common.get_hw_classification = lambda case: getattr(case, "hw_classification", None)
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import HardwareClassification, TestCase

class TestShared(TestCase):
    hw_classification = HardwareClassification.GENERIC
    def test_shared(self): pass

class TestOfDevices(TestCase):
    hw_classification = HardwareClassification.ACCELERATOR
    def test_of_devices(self, device): pass

class TestPlain(TestCase):
    def test_plain(self, device): pass

instantiate_device_type_tests(TestOfDevices, globals())
instantiate_device_type_tests(TestPlain, globals())
"""


@pytest.mark.parametrize(
    ("hardware", "tests"),
    [
        ((), ["TestOfDevicesCPU.test_of_devices_cpu", "TestPlainCPU.test_plain_cpu"]),
        (("ACCELERATOR",), ["TestOfDevicesCPU.test_of_devices_cpu"]),
        (("GENERIC", "ACCELERATOR"), ["TestShared.test_shared", "TestOfDevicesCPU.test_of_devices_cpu"]),
        (("CUDA",), []),
    ],
)
def test_classes_are_chosen_by_the_hardware_that_torch_says_they_need(
    tmp_path: Path, run_python: Run, hardware: tuple[str, ...], tests: list[str]
) -> None:
    (tmp_path / "test_classified.py").write_text(CLASSIFIED)
    program = f"""
import json
from pathlib import Path
from op_tools.torch_tests.collected import Collected
from op_tools.torch_tests.device import test_base
print(json.dumps(Collected(Path("test_classified.py"), test_base("cpu"), False, {hardware!r}).names()))
"""
    done = run_python("-c", program)
    assert done.returncode == 0 and json.loads(done.stdout) == tests, done.stderr


def test_a_classification_needs_files_of_torch_and_a_torch_that_has_it(tmp_path: Path) -> None:
    code, _, err = run("--device", "cpu", "--hw-classification", "ACCELERATOR")
    assert code == 2 and "--hw-classification is for the files of --tests" in err
    (tmp_path / "test_x.py").write_text("")
    code, _, err = run(
        "--device", "cpu", "--tests", str(tmp_path), "--suite", "test_x", "--hw-classification", "ACELERATOR"
    )
    older = f"torch {torch.__version__} does not classify its tests; 2.14 and newer do"
    newer = "there is no classification 'ACELERATOR'; did you mean 'ACCELERATOR'?"
    assert code == 2 and (newer if hasattr(common_utils, "HardwareClassification") else older) in err
