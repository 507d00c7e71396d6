"""torch's own samples on dipu: what passes, what fails, what falls back, and processes that do not answer."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("expecttest")  # torch's sample inputs import it


def test_entries_that_pass_with_and_without_a_fallback(torch_tests: Callable[..., Any]) -> None:
    done, report = torch_tests("--suite", "opinfo", "--only", "opinfo.trunc.*", "--only", "opinfo.special.i1.*")
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["suites"] == {"opinfo": {"passed": 2}}
    details = {test["test"]: test["details"] for test in report["tests"]}
    trunc, bessel = details["trunc.float32"], details["special.i1.float32"]
    assert trunc["fallbacks"] == {} and trunc["checks"] > trunc["samples"] > 0
    assert "aten::special_i1.out (no kernel)" in bessel["fallbacks"]
    runs = f"samples: {trunc['samples'] + bessel['samples']}; checks: {trunc['checks'] + bessel['checks']}, failed: 0"
    assert done.stdout.splitlines()[3:7] == [
        "entries: 2, pass: 2, crashes: 0, without a check: 0",
        f"runs of an entry at one dtype: 2; {runs}",
        "without a fallback: 1",
        "fallbacks, by entries that meet them:",
    ]
    assert "     1 aten::special_i1.out (no kernel)" in done.stdout.splitlines()


def test_what_every_operator_of_a_sample_came_to(torch_tests: Callable[..., Any]) -> None:
    names = ("trunc", "special.i1", "sgn", "nn.functional.logsigmoid")  # sgn has zeros without memory as gradients
    only = (word for name in names for word in ("--only", f"opinfo.{name}.*"))
    done, report = torch_tests("--suite", "opinfo", "--coverage", *only)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all("calls" not in test["details"] for test in report["tests"])
    measured = report["coverage"]
    rows = {(row["overload"], row["dtype"]): row for row in measured["rows"]}
    trunc, bessel = rows["trunc", "float32"], rows["special_i1.out", "float32"]
    assert trunc["calls"] == trunc["compared"] > 0 == trunc["fallen"] == trunc["wrong"]
    assert bessel["fallen"] == bessel["calls"] and bessel["causes"] == {
        "aten::special_i1.out (no kernel)": bessel["calls"]
    }
    # Its second result is for the gradient alone.
    assert rows["log_sigmoid_forward", "float32"]["apart"] > 0 == rows["log_sigmoid_forward", "float32"]["wrong"]
    fallbacks = {test["test"]: test["details"]["fallbacks"] for test in report["tests"]}
    assert fallbacks["trunc.float32"] == {} and "aten::special_i1.out (no kernel)" in fallbacks["special.i1.float32"]
    assert rows["detach", "float32"]["compared"] == 0 < rows["detach", "float32"]["calls"]
    assert "trunc.out" in measured["registered"] and "special_i1.out" not in measured["registered"]
    assert set(measured["registered"]) < set(measured["known"])
    assert (measured["vendor"], measured["shards"], measured["dtypes"]) == ("droplet", ["1/1"], "float32")


def test_an_entry_that_fails_and_a_name_that_is_none(torch_tests: Callable[..., Any]) -> None:
    done, report = torch_tests("--suite", "opinfo", "--only", "opinfo.to_sparse.*")
    assert done.returncode == 1
    assert done.stdout.startswith("FAILED opinfo.to_sparse.float32: forward: ")
    (test,) = report["tests"]
    details = test["details"]
    assert [failure["mode"] for failure in details["failures"]] == ["forward"] * min(details["failed"], 3)
    assert test["reason"].endswith(f" ({details['failed']} of {details['checks']} checks fail)")
    done, report = torch_tests("--suite", "opinfo", "--only", "opinfo.no.such.entry")
    assert done.returncode == 2 and report == {}
    assert done.stderr == "op-tools: no test matches opinfo.no.such.entry\n"


def test_a_sample_names_no_device_but_the_one_it_is_copied_to(torch: Any) -> None:
    from torch.testing._internal.opinfo.core import SampleInput

    from op_tools.torch_tests.opinfo.samples import call_of

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
    from op_tools.torch_tests.opinfo.rounded import Rounded

    x = torch.tensor([0.06396484375], dtype=torch.bfloat16)
    assert x.pow(-0.5).item() == 3.96875  # the CPU is an ULP off
    with Rounded():
        powers = x.pow(-0.5), x.clone().pow_(-0.5)
        kept = (x.float() * 3, torch.zeros(1, dtype=torch.bfloat16), x.view(1, 1))
    assert all(power.dtype == torch.bfloat16 and power.item() == 3.953125 for power in powers)
    assert kept[0].dtype == torch.float32 and kept[2].data_ptr() == x.data_ptr()


def test_a_gradient_of_halves_that_cancels(torch_tests: Callable[..., Any]) -> None:
    done, report = torch_tests("--suite", "opinfo", "--all-dtypes", "--only", "opinfo.nn.functional.normalize.*")
    assert done.returncode == 0, done.stdout
    dtypes = {test["test"].rpartition(".")[2] for test in report["tests"]}
    assert {"float16", "bfloat16"} <= dtypes


def test_a_process_that_does_not_answer(torch_tests: Callable[..., Any]) -> None:
    done, report = torch_tests("--suite", "opinfo", "--only", "opinfo.add.*", "--timeout", "0")
    assert done.returncode == 1
    assert report["tests"] == [
        {
            "suite": "opinfo",
            "test": "add.float32",
            "outcome": "timed out",
            "reason": "no answer after 0 s",
            "seconds": 0.0,
        }
    ]
