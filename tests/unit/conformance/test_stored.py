"""Stored results: the same verdicts without PyTorch, the same bytes twice, and a sentence for whatever is wrong."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from diopi_conformance.cases.plan import read_plan
from diopi_conformance.cli import cli
from diopi_conformance.expected.expectations import SCRATCH, Expected
from diopi_conformance.expected.stored_reader import DataError, Stored
from diopi_conformance.expected.stored_writer import store
from diopi_conformance.judgement.tolerance import Terms
from diopi_conformance.prepare import live, prepare
from diopi_conformance.values.inputs import UnfitCase, UnsoundCase

BLOCKED = "import sys; sys.modules['torch'] = None; from diopi_conformance.cli import main; main()"


def written(plan, folder: Path, jobs: int = 1, seed: int = 0) -> Path:
    """The results of all cases."""
    store(plan, [replace(case, seed=seed) for case in plan.cases], folder, jobs, lambda count: None)
    return folder


def run_without_torch(cwd: Path, *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BLOCKED, "run", "--vendor", "v", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


def verdicts(path: Path) -> dict[str, tuple[str, str, float | None]]:
    outcomes = json.loads(path.read_text())["outcomes"]
    return {o["id"]: (o["verdict"], o["message"], o["error"]) for o in outcomes}


@pytest.mark.parametrize("places", ["named", "found"])
def test_the_same_verdicts_come_without_torch(plan, plan_path, runtime, faulty, tmp_path, places):
    folder = written(plan, tmp_path / "conformance_data" / "v")
    named = ("--data", folder) if places == "named" else ()
    libraries = ("--plan", plan_path, "--libraries", faulty("drops_tail").parent, "--runtime", runtime, "--jobs", "2")
    without = run_without_torch(tmp_path, *libraries, *named, "--out", tmp_path / "without.json")
    assert without.returncode == 1, without.stderr
    found = CliRunner().invoke(
        cli, ["run", "--vendor", "v", *map(str, libraries), "--jobs", "1", "--out", str(tmp_path / "with.json")]
    )
    assert found.exit_code == 1
    told, live_told = verdicts(tmp_path / "without.json"), verdicts(tmp_path / "with.json")
    assert {i: t[:2] for i, t in told.items()} == {i: t[:2] for i, t in live_told.items()} != {}
    for name, (_, _, error) in told.items():
        assert error == live_told[name][2] or error == pytest.approx(live_told[name][2], rel=1e-2)


def test_without_torch_and_results_the_way_out_is_told(plan_path, runtime, faulty, tmp_path):
    vendor = faulty("none").parent
    found = run_without_torch(tmp_path, "--plan", plan_path, "--libraries", vendor, "--runtime", runtime)
    assert found.returncode == 2
    assert "PyTorch computes what to expect, and there is none here" in found.stderr
    assert "diopi-conformance data --vendor v --out DIR" in found.stderr


def test_the_same_results_are_the_same_bytes_in_any_number_of_processes(plan, tmp_path):
    one, two = written(plan, tmp_path / "one"), written(plan, tmp_path / "two", jobs=2)
    files = sorted(path.name for path in one.iterdir())
    assert files == sorted(path.name for path in two.iterdir())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in files)


def test_a_call_is_prepared_alike_from_stored_results(plan, tmp_path):
    stored = Stored(written(plan, tmp_path / "data"), plan, 0)
    for case in plan.cases:
        fresh, kept = prepare(plan, case), prepare(plan, case, stored)
        assert fresh.request == kept.request and fresh.blobs == kept.blobs
        for name, value in fresh.expected.items():
            narrow = case.dtypes[name] in ("f16", "bf16", "f32") and fresh.function.check != "exact"
            # enough digits to judge a narrow output by, and all of the others
            np.testing.assert_allclose(kept.expected[name], value, rtol=2.0**-36 if narrow else 0, atol=0)
        for label, terms in fresh.terms().items():
            assert np.array_equal(terms.magnitude, kept.terms()[label].magnitude, equal_nan=True)
            assert terms.length == kept.terms()[label].length


def test_large_cases_are_left_out_and_skipped_in_words(plan, tmp_path):
    small, large = plan.cases[0], next(case for case in plan.cases if case.largest > plan.cases[0].largest)
    count, _ = store(plan, [small, large], tmp_path / "data", 1, lambda count: None, largest=small.largest)
    stored = Stored(tmp_path / "data", plan, 0)
    assert count == 1 and stored.lacking([small, large]) == ()
    assert prepare(plan, small, stored).case is small
    words = (
        f"results of tensors with more than {small.largest} elements are not stored, and it has one of {large.largest}"
    )
    with pytest.raises(UnfitCase, match=words):
        prepare(plan, large, stored)
    with pytest.raises(DataError, match="each of the cases has a tensor of more than"):
        store(plan, [large], tmp_path / "none", 1, lambda count: None, largest=small.largest)


class Odd:
    """Results of every kind that a reference may give."""

    def forward(self, plan, case, values):
        raise UnsoundCase("no forward")

    def outputs(self, plan, case, values, forward):
        shape = values["input"].shape
        made = {"out": np.ones(shape), "scratch": SCRATCH, "count": 3, "absent": None, "list": [np.arange(3), None]}
        return Expected(values=made, strides={"out": (1,) * len(shape)})

    def terms(self, plan, case, values, forward):
        return {"out": Terms(magnitude=np.full(values["input"].shape, 2.0), length=7)}


def test_every_kind_of_result_survives(plan, tmp_path, monkeypatch):
    monkeypatch.setattr("diopi_conformance.expected.stored_writer.live", Odd)
    folder = written(replace(plan, cases=plan.cases[:1]), tmp_path / "data")
    (case,) = plan.cases[:1]
    values = prepare(plan, case, live()).values
    found = Stored(folder, plan, 0).outputs(plan, case, values, None)
    wanted = Odd().outputs(plan, case, values, None)
    assert found.strides == wanted.strides
    assert found.values["scratch"] is SCRATCH and found.values["count"] == 3 and found.values["absent"] is None
    assert np.array_equal(found.values["out"], wanted.values["out"])
    assert [None if v is None else v.tolist() for v in found.values["list"]] == [[0, 1, 2], None]
    terms = Stored(folder, plan, 0).terms(plan, case, values, None)["out"]
    assert terms.length == 7 and np.array_equal(terms.magnitude, np.full(values["input"].shape, 2.0))


def test_a_refusal_is_stored_too(plan, tmp_path, monkeypatch):
    class Refusing(Odd):
        def outputs(self, plan, case, values, forward):
            raise UnsoundCase("the row is wrong")

    monkeypatch.setattr("diopi_conformance.expected.stored_writer.live", Refusing)
    folder = written(plan, tmp_path / "data")
    with pytest.raises(UnsoundCase, match="the row is wrong"):
        prepare(plan, plan.cases[0], Stored(folder, plan, 0))


def damaged_shard(folder: Path) -> None:
    path = folder / "results-0000.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def lost_shard(folder: Path) -> None:
    (folder / "results-0000.npz").unlink()


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (damaged_shard, "results-0000.npz is damaged: its checksum is not the index's; copy the folder again"),
        (lost_shard, "results-0000.npz cannot be read: No such file or directory; copy the whole folder again"),
    ],
)
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_damaged_shard_ends_the_run_in_a_sentence(plan, plan_path, runtime, faulty, tmp_path, damage, says, jobs):
    folder = written(plan, tmp_path / "data")
    damage(folder)
    libraries = ("--libraries", faulty("none").parent, "--runtime", runtime)
    args = ("--plan", plan_path, *libraries, "--data", folder, "--jobs", jobs, "--out", tmp_path / "report.json")
    found = run_without_torch(tmp_path, *args)
    assert found.returncode == 2
    assert says in " ".join(found.stderr.split())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda index: {**index, "version": 0}, "is no index of results of this version; write them again"),
        (lambda index: [], "is no index of results of this version"),
        (lambda index: {**index, "plan": "other"}, "was written for another plan than this one; write it again with"),
        (lambda index: {**index, "seed": 7}, "holds results for seed 7; write it again with"),
        (lambda index: {k: v for k, v in index.items() if k != "shards"}, "lacks 'shards'"),
    ],
)
def test_a_foreign_index_is_refused(plan, tmp_path, change, says):
    folder = written(plan, tmp_path / "data")
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps(change(index)))
    with pytest.raises(DataError, match=says):
        Stored(folder, plan, 0)


def test_a_folder_without_an_index_and_a_broken_one_are_refused(plan, tmp_path):
    with pytest.raises(DataError, match="there are no results in"):
        Stored(tmp_path, plan, 0)
    (tmp_path / "index.json").write_text("{")
    with pytest.raises(DataError, match="is damaged"):
        Stored(tmp_path, plan, 0)


def test_inputs_drawn_otherwise_are_noticed(plan, tmp_path):
    stored = Stored(written(plan, tmp_path / "data"), plan, 0)
    other = replace(plan.cases[0], seed=1)
    with pytest.raises(DataError, match=r"'input' of '.*' is drawn otherwise here .* \(numpy .* there, .* here\)"):
        prepare(plan, other, stored)


def test_cases_that_were_not_stored_are_no_silent_skips(plan, plan_path, runtime, faulty, tmp_path):
    folder = written(replace(plan, cases=plan.cases[:3]), tmp_path / "data")
    libraries = ("--libraries", faulty("none").parent, "--runtime", runtime)
    found = run_without_torch(tmp_path, "--plan", plan_path, *libraries, "--data", folder)
    assert found.returncode == 2
    lacking = len(plan.cases) - 3
    assert f"has no results for {lacking} of the cases, e.g. '{plan.cases[3].id}'" in " ".join(found.stderr.split())


def test_nothing_but_results_is_overwritten(plan, tmp_path):
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(DataError, match="holds something else than results"):
        written(plan, tmp_path)
    folder = written(plan, tmp_path / "data")
    (folder / "old").write_text("")
    written(plan, folder, seed=1)
    assert not (folder / "old").exists() and json.loads((folder / "index.json").read_text())["seed"] == 1
    assert [p.name for p in tmp_path.iterdir() if "data" in p.name] == ["data"]


def test_the_command_writes_what_the_filters_leave(plan_path, tmp_path):
    args = ["--vendor", "v", "--plan", str(plan_path), "--op", "neg", "--dtype", "f32", "--jobs", "1"]
    found = CliRunner().invoke(cli, ["data", *args, "--out", str(tmp_path / "data")])
    assert found.exit_code == 0, found.output
    assert f"cases are in {tmp_path / 'data'}" in found.output
    stored = Stored(tmp_path / "data", read_plan(plan_path), 0)
    assert {case.function for case in read_plan(plan_path).cases if not stored.lacking([case])} == {"diopiNeg"}
