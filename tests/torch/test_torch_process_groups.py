"""torch's own tests of process groups, from its wheel, on dicl with four and eight ranks on droplet.

What cannot pass stands in distributed/torch_suite.yaml, with the reason; an entry that is not needed is an error.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import run_python

PROGRAM = Path(__file__).parent / "distributed" / "torch_suite.py"
LIST = PROGRAM.with_suffix(".yaml")
NAME = "distributed_test.ProcessGroupTest"
# Messages around a ring, parts of unequal sizes, gradients in buckets, what DDP logs, synchronized norms, objects.
PART = (
    *("test_batch_isend_irecv_*", "test_all_gather_v_cuda", "test_reduce_scatter_v_cuda", "test_nccl_backend_bool_*"),
    *("test_all_to_all_single_unequal_split_*cuda*", "test_ddp_logging_data_gpu", "test_coalescing_manager*"),
    *(
        "test_DistributedDataParallel_SyncBatchNorm",
        "test_gather_object*",
        "test_output_unused_in_loss_*",
        "test_get_backend",
    ),
)
OF_EIGHT = ("test_*_group_cuda", "test_batch_isend_irecv_no_rank_zero_nccl")  # groups of some of the ranks

Found = dict[str, dict[str, str]]


@pytest.fixture
def torch_suite(libraries: Path, tmp_path: Path) -> Callable[..., Found]:
    """Runs the tests with such names, all where none is given, and tells their outcomes."""
    pytest.importorskip("expecttest")  # torch's test classes import it
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("the library is not droplet's")

    def run(ranks: int, *globs: str) -> Found:
        done = run_python(
            str(PROGRAM),
            str(tmp_path),
            str(ranks),
            *globs,
            timeout=3000,
            TORCH_DEVICE_BACKEND_AUTOLOAD="0",
            OMP_NUM_THREADS="1",
            DROPLET_ASYNC="1",
        )
        outcomes = tmp_path / "outcomes.json"
        assert done.returncode == 0 and outcomes.exists(), done.stdout[-3000:] + done.stderr[-3000:]
        found: Found = json.loads(outcomes.read_text())
        return found

    return run


def judge(found: Found, whole: bool) -> None:
    """Fails for what does not pass and is not listed, and for entries that are not needed."""
    from op_tools.torch_tests.skips import outdated, read_skips

    skips = read_skips(LIST)
    outcomes = {f"{NAME}.{name}": one["outcome"] for name, one in found.items()}
    print(Counter(outcomes.values()))
    failed = [
        f"{name}:\n{one['text'][-1500:]}"
        for name, one in found.items()
        if one["outcome"] == "failed" and not any(skip.means(f"{NAME}.{name}") for skip in skips)
    ]
    late = outdated(skips, outcomes, frozenset({"distributed_test"} if whole else ()))
    assert not failed and not late, "\n".join([*failed, *late])


def test_a_part_of_the_tests(torch_suite: Callable[..., Found]) -> None:
    judge(torch_suite(4, *PART), whole=False)


@pytest.mark.deep("frameworks", "the tests of messages, unequal parts, buckets, logs, norms and objects")
def test_all_of_the_tests(torch_suite: Callable[..., Found]) -> None:
    judge(torch_suite(4), whole=True)


@pytest.mark.deep("frameworks", "the tests of messages, unequal parts, buckets, logs, norms and objects")
def test_those_of_eight_ranks(torch_suite: Callable[..., Found]) -> None:
    judge(torch_suite(8, *OF_EIGHT), whole=False)
