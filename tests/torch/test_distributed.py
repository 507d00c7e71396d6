"""torch.distributed with the backend dicl: two processes that run the checks of the programs in distributed/."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "distributed"
PACKAGE = Path(__file__).resolve().parents[2] / "python" / "torch_dipu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    codes: list[int]
    output: str
    done: list[set[str]]  # the checks that each rank finished
    failures: list[dict[str, str]]


def checks_of(program: str) -> list[str]:
    return re.findall(r"^def (check_\w+)", (PROGRAMS / program).read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def run_ranks(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Runs a program as two ranks, which meet at a file, with the environment variables given as keywords."""
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("the library is not droplet's")

    def run(program: str, *, torchrun: bool = False, **environment: str) -> Run:
        folder = tmp_path_factory.mktemp("ranks")
        common = {
            **os.environ,
            "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PROGRAMS}",
            "DIPU_LIBRARY_DIR": str(libraries),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "OMP_NUM_THREADS": "1",
            "TEST_REPORT": str(folder),
            **environment,
        }
        script = str(PROGRAMS / program)
        if torchrun:
            command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script]
            commands = [(command, common)]
        else:
            place = {"TEST_STORE": str(folder / "store"), "WORLD_SIZE": "2"}
            commands = [([script], {**common, **place, "RANK": str(rank)}) for rank in range(2)]
        processes = [
            subprocess.Popen(
                [sys.executable, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for arguments, env in commands
        ]
        try:
            outputs = [process.communicate(timeout=100)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        reports = [
            json.loads(path.read_text()) if path.exists() else {}
            for path in (folder / "report-0.json", folder / "report-1.json")
        ]
        return Run(
            codes=[process.returncode for process in processes],
            output="\n".join(outputs),
            done=[set(report.get("done", [])) for report in reports],
            failures=[report.get("failures", {}) for report in reports],
        )

    return run


def passed(run: Run, check: str) -> None:
    for rank in range(2):
        assert check in run.done[rank], run.output
        assert check not in run.failures[rank], run.failures[rank][check]


MODES = {
    "synchronous, two devices": {"DROPLET_ASYNC": "0", "TEST_DEVICES": "2"},
    "asynchronous, one device": {"DROPLET_ASYNC": "1", "TEST_DEVICES": "1"},
    "through the host": {"DROPLET_ASYNC": "1", "TEST_DEVICES": "1", "DIPU_COLLECTIVES": "host"},
}
WAYS = {"device": {}, "host": {"DIPU_COLLECTIVES": "host"}}


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def collectives(mode: str, run_ranks: Callable[..., Run]) -> Run:
    return run_ranks("collectives.py", **MODES[mode])


@pytest.fixture(scope="module")
def training(mode: str, run_ranks: Callable[..., Run]) -> Run:
    return run_ranks("training.py", torchrun=mode.startswith("synchronous"), **MODES[mode])


@pytest.fixture(scope="module")
def sharding(run_ranks: Callable[..., Run]) -> Run:
    return run_ranks("sharding.py", DROPLET_ASYNC="1")


@pytest.fixture(scope="module")
def compiled(run_ranks: Callable[..., Run]) -> Run:
    return run_ranks("compiled.py", DROPLET_ASYNC="1")


@pytest.fixture(scope="module", params=WAYS)
def failures(request: pytest.FixtureRequest, run_ranks: Callable[..., Run]) -> Run:
    return run_ranks("failures.py", TEST_DEVICES="1", **WAYS[request.param])


@pytest.mark.parametrize("check", checks_of("collectives.py"))
def test_collectives(collectives: Run, check: str) -> None:
    passed(collectives, check)


@pytest.mark.parametrize("check", checks_of("training.py"))
def test_training(training: Run, check: str) -> None:
    passed(training, check)


@pytest.mark.parametrize("check", checks_of("sharding.py"))
def test_sharding(sharding: Run, check: str) -> None:
    passed(sharding, check)


@pytest.mark.parametrize("check", checks_of("compiled.py"))
def test_collectives_in_compiled_programs(compiled: Run, check: str) -> None:
    passed(compiled, check)


@pytest.mark.parametrize("check", checks_of("failures.py")[:-1])
def test_failures(failures: Run, check: str) -> None:
    passed(failures, check)


def test_a_killed_rank_is_an_error_and_the_other_goes_on(failures: Run) -> None:
    check = checks_of("failures.py")[-1]
    assert check.startswith("check_a_killed_rank")
    assert check in failures.done[0] and check not in failures.done[1], failures.output
    assert check not in failures.failures[0], failures.failures[0][check]
    assert failures.codes == [0, -signal.SIGKILL], failures.output


FAULTS = ("rank-hang", "rank-die", "link-corrupt", "slow-link")
SENDERS = {  # the ranks that send in a collective, whose root is 0
    "all_reduce": (0, 1),
    "broadcast": (0,),
    "reduce": (1,),
    "all_gather": (0, 1),
    "reduce_scatter": (0, 1),
    "all_to_all": (0, 1),
    "gather": (1,),
    "scatter": (0,),
    "message": (0,),
}
FAULTY = [
    (fault, collective, call, faulty)
    for fault in FAULTS
    for collective, senders in SENDERS.items()
    for call in (1, 2, 4)
    for faulty in (senders if fault == "link-corrupt" else (0, 1))
]


def with_fault(run_ranks: Callable[..., Run], fault: str, collective: str, call: int, faulty: int) -> None:
    """Runs a program whose rank `faulty` has the fault in its `call`-th collective, from 1."""
    plan = "slow-link:300us" if fault == "slow-link" else f"{fault}:{call}"
    run = run_ranks("faults.py", RANK_FAULT=plan, COLLECTIVE=collective, FAULTY_RANK=str(faulty), TEST_DEVICES="1")
    ended = {1 - faulty} if fault == "rank-die" else {0, 1}
    for rank in ended:
        assert run.done[rank] and not run.failures[rank], run.failures[rank] or run.output
    assert [run.codes[rank] for rank in sorted(ended)] == [0] * len(ended), run.output
    assert len(ended) == 2 or run.codes[faulty] == -signal.SIGKILL, run.output


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_fabric_is_an_error_on_every_rank(fault: str, run_ranks: Callable[..., Run]) -> None:
    with_fault(run_ranks, fault, "all_reduce", 2, faulty=1)


@pytest.mark.deep("fuzz", "each fault in the second call of one collective")
@pytest.mark.parametrize(("fault", "collective", "call", "faulty"), FAULTY)
def test_faults_in_each_collective(
    fault: str, collective: str, call: int, faulty: int, run_ranks: Callable[..., Run]
) -> None:
    with_fault(run_ranks, fault, collective, call, faulty)


def test_programs_end_without_an_error(collectives: Run, training: Run, sharding: Run, compiled: Run) -> None:
    for run in (collectives, training, sharding, compiled):
        assert not any(run.codes), run.output
