"""Copies of a process that share work: everything is done once, and no end of a copy is taken for success."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from diopi_conformance.process.worker_pool import Libraries
from diopi_conformance.running.engine import Engine, RunRequest, Unusable
from diopi_conformance.running.forks import ForkDied, ForkFailed, Forks, Message


def started(work):
    """Copies that do `work` and say where at their end."""
    return lambda: (work, lambda: iter([{"ended": os.getpid()}]))


def squares(item: int) -> Iterator[Message]:
    yield {"item": item, "square": item * item}
    yield {"item": item, "square": -item}


def test_every_item_is_done_once_and_every_copy_says_its_last_word():
    messages = list(Forks(3, 10, started(squares)).messages())
    done = sorted((m["item"], m["square"]) for m in messages if "item" in m)
    assert done == sorted([(i, i * i) for i in range(10)] + [(i, -i) for i in range(10)])
    ended = [m["ended"] for m in messages if "ended" in m]
    assert len(set(ended)) == 3 and os.getpid() not in ended


def test_there_are_no_more_copies_than_items():
    assert len([m for m in Forks(8, 2, started(squares)).messages() if "ended" in m]) == 2


def test_no_items_are_no_work():
    assert [m for m in Forks(2, 0, started(squares)).messages() if "item" in m] == []


def test_a_line_longer_than_a_pipe_arrives_whole():
    long, _ = Forks(1, 1, started(lambda item: iter([{"text": "x" * 3_000_000}]))).messages()
    assert long == {"text": "x" * 3_000_000}


def test_an_exception_in_a_copy_is_one_here():
    def work(item: int) -> Iterator[Message]:
        raise RuntimeError(f"item {item} is bad")
        yield {}

    with pytest.raises(ForkFailed, match="RuntimeError: item 0 is bad"):
        list(Forks(1, 1, started(work)).messages())


def test_a_copy_that_is_killed_is_no_end():
    def work(item: int) -> Iterator[Message]:
        os.kill(os.getpid(), signal.SIGKILL)
        yield {}

    with pytest.raises(ForkDied, match="a process of the run was killed by SIGKILL"):
        list(Forks(1, 1, started(work)).messages())


def test_copies_do_not_outlive_who_stops_listening():
    def work(item: int) -> Iterator[Message]:
        yield {"pid": os.getpid()}
        time.sleep(600)

    messages = Forks(2, 2, started(work)).messages()
    pids = [next(messages)["pid"], next(messages)["pid"]]
    messages.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_run_in_copies_finds_what_a_run_in_one_process_finds(plan, runtime, faulty):
    vendor = faulty("drops_tail")
    found = []
    for jobs in (1, 3):
        outcomes = []
        libraries = Libraries(runtime=runtime, vendor=vendor)
        Engine(RunRequest(plan=plan, cases=plan.cases, libraries=libraries, jobs=jobs), outcomes.append).execute()
        found.append(sorted((o.id, o.verdict.value, o.message, o.index, o.error) for o in outcomes))
    assert found[0] == found[1] and len(found[0]) == len(plan.cases)


def test_libraries_that_do_not_load_are_told_from_copies_too(plan, tmp_path):
    libraries = Libraries(runtime=tmp_path / "none.so", vendor=tmp_path / "none.so")
    with pytest.raises(Unusable, match="the test runtime does not load"):
        Engine(RunRequest(plan=plan, cases=plan.cases, libraries=libraries, jobs=2), print).execute()
