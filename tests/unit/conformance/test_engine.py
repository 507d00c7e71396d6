"""What the suite says about libraries whose faults are known."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from diopi_conformance.cases.plan import CasePlan
from diopi_conformance.cases.selection import Selection
from diopi_conformance.judgement.compare import judge
from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.prepare import prepare
from diopi_conformance.process.worker_pool import Libraries, Worker
from diopi_conformance.report import Report, summary
from diopi_conformance.running import case_worker
from diopi_conformance.running.engine import Engine, RunRequest
from diopi_conformance.values.inputs import UnfitCase

NEG = {"functions": ("diopiNeg",), "dtypes": ("f32",)}


def test_a_right_library_passes_everything(judged):
    outcomes = judged("none", dtypes=("f32",), functions=("diopiNeg", "diopiExp"))
    assert {o.verdict for o in outcomes.values()} == {Verdict.PASS}
    words = {word for case_id in outcomes for word in case_id.split("/")[2:-1]}
    assert words == {
        *("strided", "offset", "expanded", "transposed", "overlapping"),
        *("special", "large", "denormal", "extremes"),
        *("zero", "zero-first", "zero-middle", "0-d", "one", "one-first"),
    }


def is_empty(case_id: str) -> bool:
    return any(word.startswith("zero") for word in case_id.split("/"))


def test_doing_nothing_passes_only_where_there_is_nothing_to_do(judged):
    outcomes = judged("writes_nothing", **NEG)
    passed = {o.id for o in outcomes.values() if o.verdict is Verdict.PASS}
    assert passed == {case_id for case_id in outcomes if is_empty(case_id)} != set()
    assert all(outcomes[case_id].trivial for case_id in passed)


@pytest.mark.parametrize("fault", ["writes_zeros", "copies_input", "drops_tail", "returns_status"])
def test_wrong_values_fail_in_every_view(judged, fault):
    outcomes = judged(fault, **NEG)
    bad = {o.id for o in outcomes.values() if o.verdict is Verdict.FAIL}
    full = {case_id for case_id in outcomes if not is_empty(case_id)}
    assert {case_id for case_id in bad if not is_empty(case_id)} == full


def test_ignored_strides_fail_where_there_are_strides(judged):
    outcomes = judged("ignores_strides", **NEG)
    bad = {o.id.split("/")[2] for o in outcomes.values() if o.verdict is Verdict.FAIL}
    # A transposed tensor is one block still, read and written alike.
    assert bad == {"strided", "expanded", "overlapping"}


def test_a_write_behind_the_output_is_seen(judged):
    outcomes = judged("writes_behind", **NEG)
    assert "overwritten" in outcomes["neg/f32/0"].message
    assert outcomes["neg/f32/offset/1"].message.startswith("'out' was written outside of its view")


def test_a_changed_input_is_seen(judged):
    outcomes = judged("changes_input", **NEG)
    assert outcomes["neg/f32/0"].message.startswith("'input' was changed")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("reads_temporary", r"on other bytes in memory that nobody wrote: out.* is .*, expected .*"),
        ("reads_output", r"on other bytes in memory that nobody wrote: out.* is nan, expected .*"),
        ("fails_on_other_bytes", r"status 1: on other bytes in memory that nobody wrote: .*"),
    ],
)
def test_a_result_that_depends_on_memory_that_nobody_wrote_is_wrong(judged, fault, message):
    outcomes = judged(fault, dtypes=("f32",), functions=("diopiNeg", "diopiExp"))
    assert {o.verdict for o in outcomes.values() if o.function == "diopiExp"} == {Verdict.PASS}
    wrong = [o for o in outcomes.values() if o.function == "diopiNeg" and not o.trivial]
    assert wrong and {o.verdict for o in wrong} == {Verdict.FAIL}
    assert all(re.fullmatch(message, o.message) for o in wrong)


def test_a_crash_loses_its_own_cases_only(judged):
    outcomes = judged("crashes", dtypes=("f32",), functions=("diopiNeg", "diopiExp"))
    by_function = {o.function: set() for o in outcomes.values()}
    for outcome in outcomes.values():
        by_function[outcome.function].add(outcome.verdict)
    assert by_function == {"diopiNeg": {Verdict.CRASH}, "diopiExp": {Verdict.PASS}}
    assert outcomes["neg/f32/0"].message == "killed by SIGSEGV"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("aborts", "killed by SIGABRT"),
        ("exits", "the process was ended with code 0"),
        (
            "is_sanitized",
            "the process was ended with code 66: ThreadSanitizer: data race neg.cpp:7 in operator()",
        ),
        ("throws", "killed by SIGABRT: a std::runtime_error left the function: no such kernel"),
        ("recurses", "killed by SIGSEGV"),
    ],
)
def test_whatever_ends_the_process_is_the_outcome_of_its_case(judged, fault, message):
    outcomes = judged(fault, ids=("neg/f32/0", "exp/f32/0", "neg/f32/offset/1"))
    assert {i: o.verdict for i, o in outcomes.items()} == {
        "neg/f32/0": Verdict.CRASH,
        "exp/f32/0": Verdict.PASS,
        "neg/f32/offset/1": Verdict.CRASH,
    }
    assert outcomes["neg/f32/0"].message == message


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("leaks", r"each call leaves behind 43\d\d bytes"),
        ("opens_files", "each call leaves behind 1 file"),
        ("keeps_device_memory", "each call leaves behind 4096 device bytes"),
    ],
)
def test_what_each_call_leaves_behind_is_a_leak(judged, fault, message):
    outcomes = judged(fault, ids=("neg/f32/0", "exp/f32/0"))
    assert outcomes["neg/f32/0"].verdict is Verdict.LEAK
    assert re.fullmatch(message, outcomes["neg/f32/0"].message)
    assert outcomes["exp/f32/0"].verdict is Verdict.PASS


def test_workers_run_under_a_command_that_may_keep_memory(judged, monkeypatch, tmp_path):
    monkeypatch.setenv("DIOPI_WORKER_UNDER", f"""sh -c 'echo "$@" >> {tmp_path}/started; exec "$@"' --""")
    outcomes = judged("leaks", ids=("neg/f32/0", "exp/f32/0"))
    assert {o.verdict for o in outcomes.values()} == {Verdict.PASS}
    started = (tmp_path / "started").read_text().splitlines()
    assert len(started) == 1 and "diopi_conformance.process.worker" in started[0]


def test_device_memory_that_others_take_is_no_leak(judged):
    """It grows with each call, but never by the same amount."""
    outcomes = judged("shares_a_device", ids=("neg/f32/0", "exp/f32/0"))
    assert [outcomes[i].verdict for i in ("neg/f32/0", "exp/f32/0")] == [Verdict.PASS] * 2


def test_memory_that_other_threads_give_back_is_no_leak(judged):
    """The heap keeps some of it for the thread that gave it back."""
    outcomes = judged("frees_elsewhere", ids=("neg/f32/0", "exp/f32/0"))
    assert [outcomes[i].verdict for i in ("neg/f32/0", "exp/f32/0")] == [Verdict.PASS] * 2


def test_a_hang_ends_at_its_time_limit(judged):
    ids = ("neg/f32/0", "exp/f32/0")
    outcomes = judged("hangs", time_limit=1.0, ids=ids)
    assert [outcomes[i].verdict for i in ids] == [Verdict.TIMEOUT, Verdict.PASS]


def test_what_a_library_prints_does_not_disturb(judged):
    assert {o.verdict for o in judged("prints", **NEG).values()} == {Verdict.PASS}


def test_lacking_functions_and_types_are_counted_apart(judged):
    outcomes = judged("none", ids=("sin/f32/0", "neg/f64/[0-9]"))
    assert [o.verdict for o in outcomes.values()] == [Verdict.NOT_IMPLEMENTED] * 2


def test_values_that_the_vendor_has_no_type_for_are_counted_apart(plan: CasePlan):
    neg = plan.functions["diopiNeg"]
    narrow = replace(neg, params=tuple(replace(p, casts={"f32": "i8"}) for p in neg.params))
    outcomes: list[Outcome] = []
    run = RunRequest(
        plan=replace(plan, functions={**plan.functions, "diopiNeg": narrow}),
        cases=Selection(ids=("neg/f32/[0-9]",)).of(plan),
        libraries=Libraries(runtime=Path("none.so"), vendor=Path("none.so")),  # never loaded: there is no call
    )
    Engine(run, outcomes.append).execute()
    found = {(o.verdict, o.message) for o in outcomes}
    assert found == {(Verdict.SKIPPED, "'input' holds values that i8 cannot")}
    report = Report(vendor="chip", planned=len(outcomes), outcomes=tuple(outcomes))
    assert (report.bad(), summary(report).split("; ")[0]) == ((), "0 of 2 passed (0 of them trivial), 2 skipped")


@pytest.mark.parametrize("jobs", [1, 2])
def test_references_are_computed_by_one_thread(jobs: int, plan: CasePlan, monkeypatch):
    import torch

    def told(*_: object) -> None:
        raise UnfitCase(f"threads: {torch.get_num_threads()}")

    monkeypatch.setattr(case_worker, "prepare", told)
    cases = Selection(ids=("neg/f32/[0-9]",)).of(plan)
    unloaded = Libraries(runtime=Path("none.so"), vendor=Path("none.so"))
    outcomes: list[Outcome] = []
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        Engine(RunRequest(plan=plan, cases=cases, libraries=unloaded, jobs=jobs), outcomes.append).execute()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert [o.message for o in outcomes] == ["threads: 1"] * 2


def test_a_copy_has_its_own_threads_of_pytorch_before_it_uses_them(plan: CasePlan, monkeypatch):
    import torch

    renewed: list[int] = []

    def told(*_: object) -> None:
        raise UnfitCase(f"renewed: {os.getpid() in renewed}")

    monkeypatch.setattr(case_worker, "prepare", told)
    monkeypatch.setattr(torch, "set_num_threads", lambda _: renewed.append(os.getpid()))
    unloaded = Libraries(runtime=Path("none.so"), vendor=Path("none.so"))
    outcomes: list[Outcome] = []
    cases = Selection(ids=("neg/f32/[0-9]",)).of(plan)
    Engine(RunRequest(plan=plan, cases=cases, libraries=unloaded, jobs=2), outcomes.append).execute()
    assert [o.message for o in outcomes] == ["renewed: True"] * 2


@pytest.mark.parametrize("fault", ["none", "leaks"])
def test_a_leak_is_seen_when_its_worker_ends(fault, plan: CasePlan, runtime: Path, faulty, monkeypatch):
    sanitizer = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
    if not Path(sanitizer.stdout.strip()).is_file():
        pytest.skip("the compiler has no libasan.so")
    monkeypatch.setenv("DIOPI_WORKER_PRELOAD", sanitizer.stdout.strip())
    cases = Selection(ids=("neg/f32/[0-9]",)).of(plan)
    outcomes: list[Outcome] = []
    engine = Engine(
        RunRequest(plan=plan, cases=cases, libraries=Libraries(runtime=runtime, vendor=faulty(fault))), outcomes.append
    )
    engine.execute()
    assert {o.verdict for o in outcomes} == {Verdict.PASS}
    told = "\n".join(engine.leaks)
    assert ("Direct leak of 17284 byte(s) in 4 object(s)" in told) == (fault == "leaks"), told
    report = Report(vendor="chip", planned=2, outcomes=tuple(outcomes), leaks=tuple(engine.leaks))
    assert report.exit_code == (1 if fault == "leaks" else 0)
    assert ("leaks in 1 of the workers" in summary(report)) == (fault == "leaks")


def test_the_worker_has_no_torch(plan: CasePlan):
    code = "import sys, diopi_conformance.process.worker; print('torch' in sys.modules or 'numpy' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_an_element_that_is_right_by_chance_is_not_written(plan: CasePlan, runtime: Path, faulty):
    """The first call finds in the output what it should leave there."""
    (case,) = Selection(ids=("neg/f32/0",)).of(plan)
    prepared = prepare(plan, case)
    out = next(b for b in prepared.buffers if b.expected is not None)
    out.before[0] = out.expected.reshape(-1)[0]
    worker = Worker(Libraries(runtime=runtime, vendor=faulty("leaves_first")), 30.0)
    try:
        ((head, blobs),) = worker.ask([(prepared.request, prepared.blobs)])
    finally:
        worker.stop()
    outcome = judge(plan, prepared, head, blobs)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.message.startswith("on other bytes in memory that nobody wrote: out[0, 0] is nan")
