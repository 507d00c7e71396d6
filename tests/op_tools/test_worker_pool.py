"""The processes behind `op-tools torch-tests`: answers, faults in words, and nothing that is left behind."""

import os
import sys
import time
import uuid
from pathlib import Path

import pytest

from op_tools.torch_tests.worker_pool import Answer, Question, WorkerPool
from tests.op_tools.processes_gone import ended

# Runs each line as Python; a line answers by say(value).
PROCESS = """
import json, os, sys, subprocess, tempfile, time
answers = os.fdopen(int(sys.argv[-1]), "w")
def say(value):
    print(json.dumps(value), file=answers, flush=True)
for line in sys.stdin:
    exec(line)
"""


def asked(*lines: str, jobs: int = 1, timeout: float = 30.0, preparation: str = "") -> list[Answer]:
    """The answers to lines, in the order of the lines."""

    def question(line: str) -> Question:
        command = (sys.executable, "-c", PROCESS)
        return Question(command=command, line=line, timeout=timeout, preparation=preparation)

    with WorkerPool[str](jobs, question) as pool:
        pool.add(lines)
        found = dict(pool.answers())
    return [found[line] for line in lines]


def test_a_process_answers_until_one_question_ends_it() -> None:
    same = "say(os.getpid())"
    first, second, dead, third = asked(same, same + " ", "os._exit(3)", same + "  ")
    assert first == second and first.value != third.value and not third.fault
    assert dead == Answer(fault="the process ended with 3: ")


def test_what_a_process_prints_is_no_answer_and_its_last_words() -> None:
    printed, dead = asked("print('{}', flush=True); say(1)", "print('out of', flush=True); 1 / 0")
    assert printed == Answer(value=1)
    assert dead == Answer(fault="the process ended with 1: ZeroDivisionError: division by zero")
    (cut,) = asked("answers.write('[1, '); answers.flush(); os._exit(0)")
    assert cut.fault.startswith("the process ended with 0: ")


def test_a_preparation_is_asked_once_of_each_process() -> None:
    count = "n = globals().get('n', 0) + 1; say(n)"
    assert [answer.value for answer in asked("say(n)", "say(n) ", preparation=count)] == [1, 1]
    (failed,) = asked("say(1)", preparation="raise SystemExit('not here')")
    assert failed.fault == "the process ended with 1: not here"


def test_a_process_whose_child_holds_its_pipe_has_ended_all_the_same() -> None:
    forked = "os.fork() and os._exit(7) or time.sleep(600)"
    begin = time.monotonic()
    (dead,) = asked(forked, timeout=60)
    assert dead.fault == "the process ended with 7: " and time.monotonic() - begin < 20


def test_a_command_that_is_none() -> None:
    with WorkerPool[int](1, lambda task: Question(command=("/nowhere/python",), line="", timeout=1)) as pool:
        pool.add([1, 2])
        found = dict(pool.answers())
    assert found == dict.fromkeys((1, 2), Answer(fault="no process can be started: No such file or directory"))


@pytest.mark.parametrize("ending", ["", "; time.sleep(600)", "; os._exit(1)"])
def test_files_and_processes_go_with_the_process(tmp_path: Path, ending: str) -> None:
    started = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid"
    line = f"say([tempfile.mkdtemp(), {started}])"
    folder, child = asked(line)[0].value
    assert not Path(folder).exists()
    assert ended(child)
    note = tmp_path / "note"
    held = f"open({str(note)!r}, 'w').write(tempfile.mkdtemp()){ending or '; say(0)'}"
    (answer,) = asked(held, timeout=2)
    assert bool(answer.fault) == bool(ending) and not Path(note.read_text()).exists()


def test_stopped_while_processes_start_and_run() -> None:
    own = uuid.uuid4().hex
    for wait in (0.0, 0.02, 0.2):
        question = Question(command=(sys.executable, "-c", PROCESS, own), line="time.sleep(600)", timeout=600)
        pool = WorkerPool[int](2, lambda task, question=question: question)  # type: ignore[misc]
        begin = time.monotonic()
        with pool:
            pool.add(range(4))
            time.sleep(wait)
            pool.stop()
            assert list(pool.answers()) == []
        assert time.monotonic() - begin < 20
        assert not any(own in command_of(pid) for pid in os.listdir("/proc") if pid.isdecimal())


def command_of(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""
