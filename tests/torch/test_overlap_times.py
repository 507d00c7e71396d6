"""The benchmark of hidden communication: what counts as communication, and a run of two ranks on droplet."""

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

from tests import processes
from tests.processes import ROOT

SCRIPT = ROOT / "benchmarks" / "overlap_times.py"


@pytest.fixture
def overlap_times(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return importlib.import_module(SCRIPT.stem)


def event(name: str, start: float, end: float, category: str = "kernel") -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": end - start}


GPU = [
    event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 2, 6),
    event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 5, 10),
    event("gemm", 0, 3),
    event("gemm", 3, 4),
    event("Memcpy DtoD", 8, 9, "gpu_memcpy"),
    event("nccl:all_reduce", 2, 20, "gpu_user_annotation"),
    event("cudaLaunchKernel", 0, 20, "cuda_runtime"),
]
DIPU = [event("all_reduce", 2, 10), event("diopiMm", 0, 4), event("copy, device to device", 8, 9, "gpu_memcpy")]


@pytest.mark.parametrize("events", [GPU, DIPU])
def test_what_a_trace_hides(overlap_times: ModuleType, tmp_path: Path, events: list[dict[str, object]]) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": events}))
    communication, work = overlap_times.device_times(trace)
    assert communication == [(2, 10)] and work == [(0, 4), (8, 9)]
    assert overlap_times.common(communication, work) == 3


def test_a_trace_without_communication_is_an_error(overlap_times: ModuleType, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": GPU[2:]}))
    with pytest.raises(ValueError, match="the trace has 0 events of communication and 3 of other work"):
        overlap_times.device_times(trace)


def test_two_ranks(libraries: Path) -> None:
    if not (libraries / "libdroplet_rt.so").exists():
        pytest.skip("droplet is not built")
    ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    words = (*ranks, str(SCRIPT), "dipu", "--small")
    done = processes.run_python(
        *words, timeout=200, TORCH_DEVICE_BACKEND_AUTOLOAD="0", OMP_NUM_THREADS="1", DROPLET_ASYNC="1"
    )
    assert done.returncode == 0, done.stderr
    figures = {line["name"]: line["values"] for line in map(json.loads, done.stdout.splitlines())}
    assert list(figures) == [
        f"DDP step, small MLP, {what}"
        for what in ("communication, ms", "other work, ms", "communication hidden, share")
    ]
    communication, work, hidden = figures.values()
    assert len(communication) == len(work) == len(hidden) == 10
    assert min(communication) > 0 and min(work) > 0
    assert all(0 <= share <= 1 for share in hidden) and max(hidden) > 0
