"""torch.distributed with the backend dicl: processes that run the checks of the programs in distributed/."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
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
    """Runs a program as ranks, which meet at a file, with the environment variables given as keywords."""
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("the library is not droplet's")

    def run(program: str, *, torchrun: bool = False, size: int = 2, timeout: float = 100, **environment: str) -> Run:
        folder = tmp_path_factory.mktemp("ranks")
        common = {
            **os.environ,
            "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PROGRAMS}",
            "DIPU_LIBRARY_DIR": str(libraries),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "OMP_NUM_THREADS": "1",
            "TEST_REPORT": str(folder),
            "TORCH_FR_DUMP_TEMP_FILE": str(folder / "trace_"),
            **environment,
        }
        script = str(PROGRAMS / program)
        if torchrun:
            command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), script]
            commands = [(command, common)]
        else:
            place = {"TEST_STORE": str(folder / "store"), "WORLD_SIZE": str(size)}
            commands = [([script], {**common, **place, "RANK": str(rank)}) for rank in range(size)]
        processes = [
            subprocess.Popen(
                [sys.executable, *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            for arguments, env in commands
        ]
        try:
            outputs = [process.communicate(timeout=timeout)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        reports = [
            json.loads(path.read_text()) if path.exists() else {}
            for path in (folder / f"report-{rank}.json" for rank in range(size))
        ]
        return Run(
            codes=[process.returncode for process in processes],
            output="\n".join(outputs),
            done=[set(report.get("done", [])) for report in reports],
            failures=[report.get("failures", {}) for report in reports],
        )

    return run


def passed(run: Run, check: str) -> None:
    for done, failures in zip(run.done, run.failures, strict=True):
        assert check in done, run.output
        assert check not in failures, failures[check]


MODES = {
    "synchronous, two devices": {"DROPLET_ASYNC": "0", "TEST_DEVICES": "2"},
    "asynchronous, one device": {"DROPLET_ASYNC": "1", "TEST_DEVICES": "1"},
    "through the host": {"DROPLET_ASYNC": "1", "TEST_DEVICES": "1", "DIPU_COLLECTIVES": "host"},
}
WAYS = {"device": {}, "host": {"DIPU_COLLECTIVES": "host"}}
HOST = pytest.param(
    "host", marks=pytest.mark.deep("matrix", "the same through the device, and collectives through the host")
)


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


@pytest.fixture(scope="module")
def divides() -> None:
    """The installed torch divides groups of any device."""
    from torch.distributed import split_group

    if 'torch.device("cuda")' in inspect.getsource(inspect.unwrap(split_group)):
        pytest.skip("this torch divides groups of CUDA alone")


@pytest.fixture(scope="module", params=["device", HOST])
def division(request: pytest.FixtureRequest, divides: None, run_ranks: Callable[..., Run]) -> Run:
    return run_ranks("division.py", size=4, DROPLET_ASYNC="1", TEST_DEVICES="1", **WAYS[request.param])


@pytest.fixture(scope="module", params=["device", HOST])
def left_out(request: pytest.FixtureRequest, divides: None, run_ranks: Callable[..., Run]) -> Run:
    return run_ranks("left_out.py", size=4, DROPLET_ASYNC="1", TEST_DEVICES="1", **WAYS[request.param])


@pytest.fixture(scope="module", params=["device", HOST])
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


@pytest.mark.parametrize("check", checks_of("division.py"))
def test_division(division: Run, check: str) -> None:
    passed(division, check)


@pytest.mark.parametrize("check", checks_of("left_out.py"))
def test_ranks_left_out_of_a_division(left_out: Run, check: str) -> None:
    passed(left_out, check)


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


def test_division_ends_without_an_error(division: Run) -> None:
    assert not any(division.codes), division.output


FOUND = {  # by torch's tool
    "missing": ("Not all ranks joining collective", "missing ranks: {2}"),
    "other": ("Culprit rank 2", "'all_reduce' does not match found collective type: 'broadcast'"),
}


@pytest.mark.parametrize(
    ("way", "fault"),
    [
        ("device", "missing"),
        *(
            pytest.param(way, fault, marks=pytest.mark.deep("matrix", "a rank that is missing, through the device"))
            for way, fault in (("device", "other"), ("host", "missing"), ("host", "other"))
        ),
    ],
)
def test_torchs_flight_recorder_names_the_faulty_rank(
    way: str, fault: str, run_ranks: Callable[..., Run], tmp_path: Path
) -> None:
    variables = {"TEST_FAULT": fault, "FAULTY_RANK": "2", "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "trace_")}
    run = run_ranks("flight.py", size=4, DROPLET_ASYNC="1", TEST_DEVICES="1", **variables, **WAYS[way])
    for check in checks_of("flight.py"):
        passed(run, check)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"trace_{rank}" for rank in range(4)], run.output
    command = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    printed = found.stdout + found.stderr
    assert found.returncode == 0 and all(words in printed for words in FOUND[fault]), printed
    assert printed.count("sequence number") == 1 and "flight.py" in printed, printed


def test_two_nodes(libraries: Path, tmp_path: Path) -> None:
    """Torchrun on two network namespaces, which are hosts of their own to droplet's fabric."""
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("the library is not droplet's")
    namespaces = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]), "--net"]
    link = ["ip", "link", "add", "link0", "type", "veth", "peer", "name", "link1"]
    if subprocess.run([*namespaces, *link], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system has no network namespaces for this user")
    torchrun = '"$0" -m torch.distributed.run --nnodes 2 --node-rank $NODE_RANK --nproc-per-node 2 '
    torchrun += '--master-addr $MASTER_ADDR --master-port 29500 "$1"'
    program = ["bash", "-c", torchrun, sys.executable, str(PROGRAMS / "nodes.py")]
    done = subprocess.run(
        [*namespaces, "bash", str(PROGRAMS / "two_nodes.sh"), str(tmp_path), *program],
        env={
            **os.environ,
            "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PROGRAMS}",
            "DIPU_LIBRARY_DIR": str(libraries),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
            "OMP_NUM_THREADS": "1",
            "DROPLET_ASYNC": "1",
            "TEST_REPORT": str(tmp_path),
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    printed = done.stderr + "".join(path.read_text() for path in sorted(tmp_path.glob("node-*")))
    for rank in range(4):
        report = tmp_path / f"report-{rank}.json"
        assert report.exists(), printed
        found = json.loads(report.read_text())
        assert found["done"] == checks_of("nodes.py") and not found["failures"], found["failures"]
    assert done.returncode == 0, printed


def soaked(run_ranks: Callable[..., Run], seconds: int) -> None:
    run = run_ranks(
        "soak.py",
        size=4,
        timeout=seconds + 200,
        SOAK_SECONDS=str(seconds),
        SOAK_SEED=str(time.time_ns()),
        DROPLET_ASYNC="1",
        DROPLET_DEVICES="4",
        TEST_DEVICES="4",
    )
    print(run.output)  # the seed and the counts
    passed(run, "soak")
    assert not any(run.codes), run.output


def test_random_collectives(run_ranks: Callable[..., Run]) -> None:
    soaked(run_ranks, 5)


@pytest.mark.deep("races", "the same for five seconds")
def test_random_collectives_for_minutes(run_ranks: Callable[..., Run]) -> None:
    soaked(run_ranks, int(os.environ.get("SOAK_SECONDS", "600")))
