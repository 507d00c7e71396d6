"""Captured calls become conformance cases: which, with what in them, and that they find a chip's fault."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import op_tools
from diopi_conformance.capture.context import setting
from diopi_conformance.capture.store import Store
from diopi_conformance.cases.model_cases import model_cases
from diopi_conformance.report import read_report
from op_tools.export import export
from op_tools.store.reader import captures
from tests.op_tools.faulty import Faulty, wrong_value
from tests.processes import ROOT, built_folder, run_warm

PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"
LIBRARIES = built_folder()

run = partial(run_warm, "-m", TORCH_DEVICE_BACKEND_AUTOLOAD="0")

pytestmark = pytest.mark.skipif(not PLAN.exists(), reason="droplet's plan is not generated")
built = pytest.mark.skipif(
    LIBRARIES is None or not (LIBRARIES / "libdiopi_impl.so").exists() or shutil.which("g++") is None,
    reason="droplet is not built, or there is no g++",
)

# Forward, backward and optimizer of a small network; the device is the first argument.
STEP = """\
import sys
import torch
from torch import nn

device = sys.argv[1]
if device == "dipu":
    import torch_dipu
    torch_dipu.start()
torch.manual_seed(0)
layers = [nn.Embedding(11, 8), nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 5)]
model = nn.Sequential(*layers).to(device)
tokens, classes = torch.randint(11, (6,)).to(device), torch.randint(5, (6,)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(2):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens), classes).backward()
    optimizer.step()
"""

# Droplet but for its relu, which gives one percent too much.
FAULTY = """\
#include <diopi/functions.h>
#include <dlfcn.h>
extern "C" __attribute__((visibility("default"))) diopiError_t diopiRelu(
    diopiContextHandle_t ctx, diopiTensorHandle_t out, diopiConstTensorHandle_t input) {
    const auto real = reinterpret_cast<decltype(&diopiRelu)>(dlsym(RTLD_NEXT, "diopiRelu"));
    const auto scale = reinterpret_cast<decltype(&diopiMulInpScalar)>(dlsym(RTLD_NEXT, "diopiMulInpScalar"));
    diopiScalar_t factor{};
    factor.stype = diopi_dtype_float64;
    factor.fval = 1.01;
    const auto status = real(ctx, out, input);
    return status == diopiSuccess ? scale(ctx, out, &factor) : status;
}
"""


def conformance(folder: Path, library: Path) -> tuple[int, dict[str, str]]:
    """The exit code, and the verdict of each case by its id."""
    assert LIBRARIES is not None
    near = folder / "lib"
    near.mkdir(exist_ok=True)
    shutil.copy(library, near / "libdiopi_impl.so")
    words = ["--vendor", "droplet", "--models", "model_cases", "--origin", "model", "--model", "step", "--jobs", "1"]
    words += ["--plan", str(PLAN), "--libraries", str(near), "--runtime", str(LIBRARIES / "libdiopirt.so"), "--quiet"]
    done = run("diopi_conformance", "run", *words, "--out", "found.json", folder=folder)
    assert (folder / "found.json").exists(), done.stdout + done.stderr
    return done.returncode, {case.id: case.verdict.value for case in read_report(folder / "found.json").outcomes}


@built
@pytest.mark.parametrize(
    ("device", "served"),
    [
        pytest.param(
            "cpu",
            {"addmm", "relu", "embedding", "gelu_backward", "embedding_backward", "addcdiv_inp"},
            marks=pytest.mark.deep("matrix", "the same of a step on dipu; below, calls on the CPU one by one"),
        ),
        ("dipu", {"linear", "relu", "embedding", "linear_backward", "gelu_backward", "embedding_backward"}),
    ],
)
def test_a_training_step_becomes_cases_which_a_chip_passes_and_a_faulty_one_fails(tmp_path, device, served):
    assert LIBRARIES is not None
    (tmp_path / "step.py").write_text(STEP)
    taken = run("op_tools", "run", "step.py", "--capture", "--", device, folder=tmp_path)
    assert taken.returncode == 0, taken.stdout + taken.stderr
    found = run("op_tools", "export", "op_tools_results/op_capture_results", "--name", "step", folder=tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    code, verdicts = conformance(tmp_path, LIBRARIES / "libdiopi_impl.so")
    assert code == 0 and set(verdicts.values()) == {"pass"} and len(verdicts) > 30
    assert served <= {case.partition("/")[0] for case in verdicts}

    (tmp_path / "faulty.cpp").write_text(FAULTY)
    words = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{ROOT / 'generated' / 'include'}", "faulty.cpp"]
    words += ["-o", "libfaulty.so", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-Wl,--no-as-needed", "-ldiopi_impl"]
    subprocess.run([*words, "-ldl"], cwd=tmp_path, check=True)
    code, verdicts = conformance(tmp_path, tmp_path / "libfaulty.so")
    assert code == 1
    assert {case.partition("/")[0] for case, verdict in verdicts.items() if verdict != "pass"} == {"relu"}


@pytest.fixture(scope="module")
def here():
    return setting(PLAN)


def exported(here, tmp_path, step, **options):
    """What `step` becomes: the result of export, and the cases by function."""
    with op_tools.OpCapture(".*", folder=tmp_path / "captures", **options):
        step()
    store = Store(tmp_path / "cases")
    found = export(captures(tmp_path / "captures"), here, store, "step")
    store.write()
    return found, {case.function: case for case in model_cases(here.plan, tmp_path / "cases")}


def test_shapes_dtypes_numbers_and_views_are_those_of_the_call(here, tmp_path):
    x = torch.randn(4, 6, dtype=torch.bfloat16)
    found, cases = exported(here, tmp_path, lambda: torch.add(x[:, ::2], x[:, 3:], alpha=0.5))
    assert (found.captures, found.cases, found.alike) == (1, 1, 0) and not found.tally.unmapped
    case = cases["diopiAdd"]
    assert case.id == "add/bf16/strided/model/0" and case.dtypes["out"] == "bf16" and case.data == {}
    assert case.values == {"input": [4, 3], "other": [4, 3], "alpha": 0.5}


def test_calls_that_are_alike_are_one_case(here, tmp_path):
    def step():
        for _ in range(5):
            torch.relu(torch.randn(3))
        torch.relu(torch.ones(4))

    found, _ = exported(here, tmp_path, lambda: step(), condition_func=lambda name, *_, **__: "relu" in name)
    assert (found.captures, found.cases, found.alike) == (6, 2, 4)


def test_positions_are_kept_and_numbers_that_are_computed_with_are_drawn(here, tmp_path):
    weight, tokens = torch.randn(9, 4), torch.tensor([[7, 1], [1, 8]])
    _, cases = exported(here, tmp_path, lambda: F.embedding(tokens, weight))
    assert cases["diopiEmbedding"].data == {"indices": "listed(7, 1, 1, 8)"}


def test_a_call_that_was_wrong_keeps_its_elements_and_goes_before_one_that_was_right(here, tmp_path):
    with op_tools.OpCapture("aten.relu", folder=tmp_path):
        torch.relu(torch.zeros(2))
    with (
        Faulty("aten.relu.default", wrong_value),
        op_tools.OpAutoCompare(".*", table=False, dump=tmp_path, write=lambda _: None),
    ):
        torch.relu(torch.tensor([0.1, -float("inf")]))
    store = Store(tmp_path / "cases")
    found = export(captures(tmp_path), here, store, "step")
    store.write()
    (case,) = model_cases(here.plan, tmp_path / "cases")
    assert (found.captures, found.alike) == (2, 1)
    assert case.data == {"input": "listed(0.10000000149011612, -inf)"}


def test_what_becomes_no_case_is_counted_with_the_reason(here, tmp_path):
    def step():
        F.glu(torch.ones(4))
        torch.ones(1).item()
        torch.ones(600_000).exp_()
        torch.ones(3, dtype=torch.complex64).abs().sum()

    found, _ = exported(here, tmp_path, step)
    reasons = found.tally.unmapped
    assert reasons["glu", "nothing in the contract"] == 1
    assert reasons["_local_scalar_dense", "computes nothing"] == 1
    assert reasons["exp_", "too large"] == 1
    assert found.tally.calls == found.tally.mapped + sum(reasons.values()) >= found.captures


def test_the_same_captures_give_the_same_bytes_and_are_not_new_twice(here, tmp_path):
    layer = torch.nn.Linear(4, 2)
    exported(here, tmp_path, lambda: layer(torch.ones(3, 4)).sum().backward())
    before = {path.name: path.read_bytes() for path in (tmp_path / "cases").iterdir()}
    store = Store(tmp_path / "cases")
    assert export(captures(tmp_path / "captures"), here, store, "step").cases == 0
    store.write()
    assert {path.name: path.read_bytes() for path in (tmp_path / "cases").iterdir()} == before


def test_a_folder_without_captures_is_refused(tmp_path):
    found = run("op_tools", "export", "nowhere", folder=tmp_path)
    assert (found.returncode, found.stderr) == (2, "op-tools: nowhere holds no captures\n")
    (tmp_path / "memory").mkdir()
    none = run("op_tools", "export", ".", folder=tmp_path)
    assert none.returncode == 1 and none.stdout.startswith("0 captures\n0 calls, 0 of them calls of the contract")
