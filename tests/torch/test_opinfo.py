"""The runner of torch's own samples: what passes, what fails, what falls back, and processes that die."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("expecttest")  # torch's sample inputs import it

ROOT = Path(__file__).resolve().parents[2]


def run(libraries: Path, out: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    environment = {**os.environ, "DIPU_LIBRARY_DIR": str(libraries), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "python" / "torch_dipu")])
    command = [sys.executable, "-m", "tools.opinfo", "--out", str(out), "--jobs", "1", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    report: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    return done, report


def test_entries_that_pass_with_and_without_a_fallback(libraries: Path, tmp_path: Path) -> None:
    done, report = run(libraries, tmp_path / "out.json", "--only", "trunc", "--only", "special.i1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[:2] == [
        "entries: 2, pass: 2, crashes: 0",
        "without a fallback: 1; without a sample: 0",
    ]
    by_entry = {result["entry"]: result for result in report["results"]}
    assert by_entry["trunc"]["fallbacks"] == {} and by_entry["trunc"]["checks"] > by_entry["trunc"]["samples"] > 0
    assert "aten::special_i1.out (no kernel)" in by_entry["special.i1"]["fallbacks"]


def test_an_entry_that_fails_and_a_name_that_is_none(libraries: Path, tmp_path: Path) -> None:
    done, report = run(libraries, tmp_path / "out.json", "--only", "to_sparse")
    assert done.returncode == 1
    assert "FAIL to_sparse float32" in done.stdout
    assert report["results"][0]["failures"][0]["mode"] == "forward"
    done, _ = run(libraries, tmp_path / "none.json", "--only", "no.such.entry")
    assert done.returncode == 2 and "no entry matches no.such.entry" in done.stderr


def test_a_sample_names_no_device_but_the_one_it_is_copied_to(torch: Any) -> None:
    from torch.testing._internal.opinfo.core import SampleInput

    from tools.opinfo.samples import call_of

    elsewhere = torch.ones(2, device="dipu")
    sample = SampleInput(
        elsewhere, args=("cuda:0", torch.device("cuda", 0), [elsewhere], "mean"), kwargs={"device": "cpu"}
    )
    for device in ("cpu", "dipu"):
        call = call_of(sample, device)
        assert call.input.device.type == device and call.args[2][0] is call.input
        assert call.args[:2] == (device, torch.device(device)) and call.args[3] == "mean"
        assert call.kwargs == {"device": device}


def test_halves_are_judged_by_operators_that_round_once(torch: Any) -> None:
    from tools.opinfo.rounded import Rounded

    x = torch.tensor([0.06396484375], dtype=torch.bfloat16)
    assert x.pow(-0.5).item() == 3.96875  # the CPU is an ULP off
    with Rounded():
        powers = x.pow(-0.5), x.clone().pow_(-0.5)
        kept = (x.float() * 3, torch.zeros(1, dtype=torch.bfloat16), x.view(1, 1))
    assert all(power.dtype == torch.bfloat16 and power.item() == 3.953125 for power in powers)
    assert kept[0].dtype == torch.float32 and kept[2].data_ptr() == x.data_ptr()


def test_a_gradient_of_halves_that_cancels(libraries: Path, tmp_path: Path) -> None:
    done, report = run(libraries, tmp_path / "out.json", "--all-dtypes", "--only", "nn.functional.normalize")
    assert done.returncode == 0, done.stdout
    assert {"float16", "bfloat16"} <= {result["dtype"] for result in report["results"]}


def test_a_process_that_does_not_answer(libraries: Path, tmp_path: Path) -> None:
    done, report = run(libraries, tmp_path / "out.json", "--only", "add", "--timeout", "0")
    assert done.returncode == 1
    assert report["results"][0]["crash"] == "no answer after 0 s"
