"""The process monitor: what it counts, its file, its exit codes, and how it ends."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

import op_tools
from op_tools.cli import main
from op_tools.monitor import device_memory
from op_tools.monitor.usage import ProcessEnded, Tree
from op_tools.monitor.watch import COLUMNS
from op_tools.results import Table

# A parent that holds 64 MiB and a thread, and a child that holds 32 MiB, three files, and works.
FAMILY = """
import subprocess, sys, threading, time
child = '''
import sys
held, files = bytearray(b"x") * (32 << 20), [open(sys.executable, "rb") for _ in range(3)]
print(flush=True)
while True: pass
'''
process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
held = bytearray(b"x") * (64 << 20)
process.stdout.readline()
print(process.pid, flush=True)
sys.stdin.read()
process.kill()
"""
ENDS = "import sys, time; time.sleep(0.5); print('out'); sys.exit(7)"
WAITS = "import time; print('ready', flush=True); time.sleep(600)"


@contextmanager
def python(program: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs `program`, ended with all below it."""
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        with suppress(psutil.NoSuchProcess):
            for each in psutil.Process(process.pid).children(recursive=True):
                each.kill()
        process.kill()
        process.communicate()


def test_children_are_summed_in_and_cpu_is_of_the_time_between_two_looks() -> None:
    with python(FAMILY) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        tree, busy = Tree(psutil.Process(process.pid)), psutil.Process(child)
        start, before = time.monotonic(), sum(busy.cpu_times()[:2])
        first = tree.usage()
        alone = Tree(busy).usage()
        while sum(busy.cpu_times()[:2]) < before + 0.3:
            time.sleep(0.01)
        second = tree.usage()
        share = 100 * (sum(busy.cpu_times()[:2]) - before) / (time.monotonic() - start)
    assert first.processes == (process.pid, child) and alone.processes == (child,)
    assert first.cpu_percent is None and second.cpu_percent == pytest.approx(share, rel=0.5)
    assert alone.rss > 32 << 20 and first.rss - alone.rss > 64 << 20 and first.vms > first.rss
    assert (alone.threads, first.threads) == (1, 3)
    assert alone.open_files is not None and first.open_files is not None
    assert alone.open_files >= 6 and first.open_files - alone.open_files >= 3


def test_an_idle_process_uses_no_cpu_and_one_that_ended_is_none() -> None:
    with python(WAITS) as process:
        assert process.stdout is not None
        process.stdout.readline()
        tree = Tree(psutil.Process(process.pid))
        tree.usage()
        time.sleep(0.3)
        assert tree.usage().cpu_percent == pytest.approx(0, abs=5)
        process.kill()
        while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:  # nobody has asked for its end yet
            time.sleep(0.01)
        with pytest.raises(ProcessEnded, match=f"process {process.pid} has ended"):
            tree.usage()


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int], None]:
    """Puts a nvidia-smi on the path that prints a text and ends with a code."""

    def install(text: str, code: int) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "said").write_text(text)
        (folder / "nvidia-smi").write_text(f'#!/bin/sh\necho "$@" > {folder}/asked\ncat {folder}/said\nexit {code}\n')
        (folder / "nvidia-smi").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return install


def test_device_memory_is_that_of_the_named_processes_on_all_devices(
    tmp_path: Path, nvidia_smi: Callable[[str, int], None]
) -> None:
    nvidia_smi("17, 512\n17, 256\n18, 100\n19, [N/A]\n", 0)
    assert device_memory.by_process() == {17: 768 << 20, 18: 100 << 20}
    assert (tmp_path / "bin" / "asked").read_text().split() == [
        "--query-compute-apps=pid,used_memory",
        "--format=csv,noheader,nounits",
    ]
    assert device_memory.sum_of((17, 18, 4)) == 868 << 20
    assert device_memory.sum_of((4, 19)) is None
    nvidia_smi("NVIDIA-SMI has failed\n", 9)
    assert device_memory.by_process() is None and device_memory.sum_of((17,)) is None


def test_without_the_vendor_s_tool_there_is_no_device_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert device_memory.by_process() is None and device_memory.sum_of((17,)) is None


def hear() -> None:
    """Lets Ctrl-C be heard, which shells switch off for what they start in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Starts the monitor in a folder of its own; `module` is what Python runs."""
    running = []

    def start(*words: str, module: str = "op_tools.process_monitor", **variables: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            cwd=tmp_path,
            env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=hear,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def table(folder: Path) -> tuple[str, list[dict[str, str]]]:
    """The name and the rows of the one table, which must be whole."""
    (path,) = (folder / "op_tools_results" / "process_monitor_result").iterdir()
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS and all(len(row) == len(COLUMNS) for row in rows)
    assert path.read_text().count("time_str") == 1
    return path.name, [dict(zip(header, row, strict=True)) for row in rows]


def wait_for_rows(folder: Path, count: int) -> None:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for path in folder.glob("op_tools_results/process_monitor_result/*.csv"):
            if path.read_text().count("\n") > count:
                return
        time.sleep(0.05)
    raise AssertionError("no rows came")


def test_a_command_is_watched_until_it_ends_and_its_exit_code_is_passed_on(tmp_path: Path, started: Started) -> None:
    words = ("monitor", "--interval", "0.1", "--label", "bf 16/a", "--", sys.executable, "-c", ENDS)
    process = started(*words, module="op_tools", PATH="", label="other")
    out, told = process.communicate(timeout=120)
    assert (process.returncode, out) == (7, "out\n"), told
    name, rows = table(tmp_path)
    shape = r"process_monitor_result_cpu_pid\d+_bf_16_a_\d{4}(-\d\d){5}\.csv"
    assert re.fullmatch(shape, name) and len(rows) >= 3
    assert rows[0]["cpu_percent"] == "" and all(float(row["cpu_percent"]) >= 0 for row in rows[1:])
    assert {row["device_memory"] for row in rows} == {""} and int(rows[-1]["rss"]) > 1 << 20
    times = [float(row["time"]) for row in rows]
    assert times == sorted(times) and 0.2 < times[-1] - times[0] < 5
    assert told.startswith(f"monitor: {len(rows)} rows in op_tools_results/process_monitor_result/{name}; at most ")


def test_a_process_is_watched_in_the_established_way_and_the_label_comes_from_the_environment(
    tmp_path: Path, started: Started, nvidia_smi: Callable[[str, int], None]
) -> None:
    with python(WAITS) as watched:
        nvidia_smi(f"{watched.pid}, 3\n1, 5\n", 0)
        process = started("--pid", str(watched.pid), "--interval", "1", label="run7")
        wait_for_rows(tmp_path, 2)
        watched.kill()
        watched.wait()
        _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    name, rows = table(tmp_path)
    assert name.startswith(f"process_monitor_result_nvidia_pid{watched.pid}_run7_2")
    assert len(rows) >= 2 and {row["device_memory"] for row in rows} == {str(3 << 20)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_monitor_that_is_ended_has_written_its_rows(tmp_path: Path, started: Started, number: int) -> None:
    with python(WAITS) as watched:
        process = started(str(watched.pid), "--interval", "0.05", OP_TOOLS_MAX_CACHE_SIZE="10")
        wait_for_rows(tmp_path, 10)  # the header and the first ten, together
        process.send_signal(number)
        _, told = process.communicate(timeout=120)
        assert watched.poll() is None
    assert process.returncode == 0 and "Traceback" not in told
    _, rows = table(tmp_path)
    assert f"monitor: {len(rows)} rows in" in told


def test_ctrl_c_while_rows_are_written_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, interruptions = Table.write, [signal.SIGINT]

    def interrupted(self: Table) -> None:
        while interruptions:
            os.kill(os.getpid(), interruptions.pop())
        write(self)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Table, "write", interrupted)
    heard = signal.getsignal(signal.SIGINT)
    with python(WAITS) as watched:
        hear()
        try:
            done = CliRunner().invoke(main, ["monitor", str(watched.pid), "--interval", "0.1"])
        finally:
            signal.signal(signal.SIGINT, heard)
    assert done.exit_code == 0 and len(table(tmp_path)[1]) == 1


@pytest.mark.parametrize(("number", "group"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_command_gets_the_signal_and_the_monitor_ends_after_it(
    tmp_path: Path, started: Started, number: int, group: bool
) -> None:
    own = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); print('ready', flush=True)\n"
    process = started("--interval", "0.05", "--", sys.executable, "-c", f"{own}time.sleep(600)")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    wait_for_rows(tmp_path, 2)
    (os.killpg if group else os.kill)(process.pid, number)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 128 + number and "Traceback" not in told
    assert len(table(tmp_path)[1]) >= 2


def test_rows_wait_as_the_environment_says(tmp_path: Path, started: Started) -> None:
    command = "import sys, time; time.sleep(0.5); print('now', flush=True); sys.stdin.read()"
    process = started("--interval", "0.05", "--", sys.executable, "-c", command, OP_TOOLS_MAX_CACHE_SIZE="1000")
    assert process.stdout is not None and process.stdout.readline() == "now\n"
    assert not (tmp_path / "op_tools_results").exists()
    process.communicate(timeout=120)
    assert len(table(tmp_path)[1]) > 3


@pytest.mark.parametrize(
    ("words", "variables", "message"),
    [
        (("999999999",), {}, "op-tools: there is no process 999999999\n"),
        (("--", "./nothing"), {}, "op-tools: './nothing' cannot be run: No such file or directory\n"),
        ((), {}, "Error: name one process by its number, or a command after `--`\n"),
        (("--pid", "1", "--", "true"), {}, "Error: name one process by its number, or a command after `--`\n"),
        (
            ("--", "true"),
            {"OP_TOOLS_MAX_CACHE_SIZE": "many"},
            "op-tools: OP_TOOLS_MAX_CACHE_SIZE is 'many': set it to a whole number\n",
        ),
    ],
)
def test_what_cannot_be_watched_is_told(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(main, ["monitor", *words])
    assert done.exit_code == 2 and done.stderr.endswith(message)


def test_a_table_that_cannot_be_written_does_not_end_the_command(tmp_path: Path, started: Started) -> None:
    (tmp_path / "op_tools_results").mkdir()
    (tmp_path / "op_tools_results" / "process_monitor_result").write_text("a file")
    process = started("--interval", "0.1", "--", sys.executable, "-c", ENDS)
    out, told = process.communicate(timeout=120)
    assert (process.returncode, out) == (7, "out\n")
    assert "cannot be written: " in told and "Traceback" not in told


def test_the_script_of_the_established_name_is_the_same_command(tmp_path: Path) -> None:
    script = Path(op_tools.__file__).parent / "process_monitor.py"
    done = subprocess.run(
        [sys.executable, str(script), "--interval", "0.1", "--", sys.executable, "-c", ENDS],
        cwd=tmp_path,
        env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 7 and len(table(tmp_path)[1]) >= 2
