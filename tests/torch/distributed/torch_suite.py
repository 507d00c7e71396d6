"""torch's own tests of process groups, from its wheel, on dicl: `python torch_suite.py FOLDER RANKS [GLOB...]`.

They are run as the tests of NCCL, which the alias of CUDA makes those of dicl. All ranks are forks of this process,
which has imported what they need, and run one test after another. When a rank fails a test, or hangs in it, all of
them end, and new ones go on with the next test. FOLDER/outcomes.json gets the outcome of each test: passed, skipped
with torch's reason, or failed with what the ranks say.
"""

import json
import os
import sys
import time
import traceback
import unittest
from collections.abc import Iterator, Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

FOLDER, RANKS, GLOBS = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
# Read when the tests are imported.
os.environ |= {"BACKEND": "nccl", "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
os.environ |= {"TEMP_DIR": str(FOLDER), "DIPU_MOCK_CUDA": "1", "DROPLET_DEVICES": str(RANKS)}

import torch  # noqa: E402

import torch_dipu  # noqa: E402

torch_dipu.start()

import torch.distributed as dist  # noqa: E402

torch.cuda.nccl.version = lambda: (2, 30, 0)  # tests ask whether it can send and receive

from torch.testing._internal import common_distributed, common_utils  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

SECONDS = 300.0  # that a test may take
GRACE = 3.0  # that the other ranks have to say what they saw
LEFT_OUT = {"test_ddp_uneven_inputs": "its convolutions of a million pixels take hours on a chip that is simulated"}
SKIPS = {skip.exit_code: skip.message for skip in common_distributed.TEST_SKIPS.values()}


class ProcessGroupTest(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
    """As one rank runs them: whoever made the processes sets `rank`."""

    setUpClass = classmethod(lambda cls: None)
    setUp = tearDown = lambda self: None


def outcome(name: str, rank: int) -> dict[str, Any]:
    """What became of a test on this rank."""
    place = FOLDER / name
    os.environ["TEMP_DIR"] = str(place)
    distributed_test.Barrier.barrier_id = 0
    test = ProcessGroupTest(name)
    test.rank, test.file_name = rank, str(place / "store")
    common_utils.set_rng_seed()
    seconds = distributed_test.CUSTOM_PG_TIMEOUT.get(name, distributed_test.default_pg_timeout)
    try:
        dist.init_process_group(
            "nccl",
            init_method=test.init_method,
            rank=rank,
            world_size=RANKS,
            timeout=timedelta(seconds=seconds),
        )
        test._barrier()
        getattr(test, name)()
        test._barrier()
        if dist.is_initialized():
            dist.destroy_process_group()
    except unittest.SkipTest as skip:
        found = {"outcome": "skipped", "text": str(skip)}
    except SystemExit as end:
        found = {"outcome": "skipped", "text": SKIPS.get(end.code, f"ended with {end.code}")}
    except BaseException:
        return {"outcome": "failed", "text": f"rank {rank}: {traceback.format_exc()}"}
    else:
        return {"outcome": "passed", "text": ""}
    if dist.is_initialized():
        dist.destroy_process_group()
    return found


def run_rank(rank: int, names: Sequence[str], answers: Connection) -> None:
    """Sends (test, outcome) for each test, and None as the outcome before it."""
    torch.set_num_threads(1)
    for name in names:
        answers.send((name, None))
        found = outcome(name, rank)
        answers.send((name, found))
        if found["outcome"] == "failed":
            break
    sys.stdout.flush()
    os._exit(0)  # threads of a test that failed may never end


class Ranks:
    """One process per rank; `outcomes` fills as they answer."""

    def __init__(self, names: Sequence[str]) -> None:
        self.outcomes: dict[str, dict[int, dict[str, Any]]] = {name: {} for name in names}
        self._context = get_context("fork")
        self._answers: dict[Any, int] = {}
        self._processes: list[BaseProcess] = []
        for rank in range(RANKS):
            read, write = self._context.Pipe(duplex=False)
            process = self._context.Process(target=run_rank, args=(rank, names, write))
            process.start()
            write.close()
            self._answers[read] = rank
            self._processes.append(process)

    def join(self) -> str:
        """The test that not all ranks came out of, or ""."""
        current, limit = "", time.monotonic() + SECONDS
        while self._answers:
            ready = wait(list(self._answers), max(0.0, limit - time.monotonic()))
            if not ready:
                break
            for read in ready:
                name, found = self._read(read)
                if found is None:
                    if name > current:
                        current, limit = name, time.monotonic() + SECONDS
                    continue
                self.outcomes[name][self._answers[read]] = found
                if found["outcome"] == "failed":
                    limit = time.monotonic() + GRACE
        for process in self._processes:
            process.kill()
            process.join()
        complete = current and len(self.outcomes[current]) == RANKS
        return "" if complete and not self._failed(current) else current

    def _failed(self, name: str) -> bool:
        return any(found["outcome"] == "failed" for found in self.outcomes[name].values())

    def _read(self, read: Any) -> tuple[str, Any]:
        try:
            return read.recv()
        except EOFError:
            del self._answers[read]
            return "", None


def judged(found: dict[int, dict[str, Any]]) -> dict[str, str]:
    """The outcome of a test, of which some ranks may have said nothing."""
    failed = [one["text"] for one in found.values() if one["outcome"] == "failed"]
    if failed or len(found) < RANKS:
        missing = sorted(set(range(RANKS)) - set(found))
        silent = [f"no answer of rank {', '.join(map(str, missing))}"] if missing else []
        return {"outcome": "failed", "text": "\n".join(failed + silent)}
    skipped = [one["text"] for one in found.values() if one["outcome"] == "skipped"]
    if len(skipped) == RANKS:
        return {"outcome": "skipped", "text": skipped[0]}
    return {"outcome": "passed", "text": ""}


def outcomes(names: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Each test with its outcome, as they come."""
    left = list(names)
    while left:
        ranks = Ranks(left)
        stopped = ranks.join()
        end = left.index(stopped) + 1 if stopped else len(left)
        for name in left[:end]:
            yield name, judged(ranks.outcomes[name])
        left = left[end:]


def marked(name: str) -> str:
    """Why a test does not run: torch says so, or it is too large; "" if it does."""
    test = getattr(ProcessGroupTest, name)
    return str(test.__unittest_skip_why__) if getattr(test, "__unittest_skip__", False) else LEFT_OUT.get(name, "")


def main() -> None:
    tests = unittest.TestLoader().getTestCaseNames(ProcessGroupTest)
    names = sorted(name for name in tests if not GLOBS or any(fnmatchcase(name, glob) for glob in GLOBS))
    for name in names:
        for part in ("barrier", "test_dir", "init_dir"):
            (FOLDER / name / part).mkdir(parents=True)
    found = {name: {"outcome": "skipped", "text": why} for name in names if (why := marked(name))}
    for name, one in outcomes([name for name in names if name not in found]):
        found[name] = one
        print(f"{one['outcome']:8} {name}", flush=True)
        (FOLDER / "outcomes.json").write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
