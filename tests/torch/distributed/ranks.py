"""What one rank of a test does: join the group, run each check of a module, and write down what failed."""

import json
import os
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import torch_dipu

torch_dipu.start()

RANK = int(os.environ["RANK"])
SIZE = int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("dipu", RANK % int(os.environ.get("TEST_DEVICES", "2")))


def join(backend: str = "cpu:gloo,dipu:dicl", timeout: float = 10, **options: Any) -> None:
    """Join the group of all ranks, through the file or the agent that the environment names; `timeout` in seconds."""
    torch.dipu.set_device(DEVICE)
    where = os.environ.get("TEST_STORE")
    method = {"init_method": f"file://{where}", "rank": RANK, "world_size": SIZE} if where else {}
    dist.init_process_group(backend, timeout=timedelta(seconds=timeout), **method, **options)


def run_checks(module: dict[str, Any]) -> None:
    """Run the functions ``check_...`` of a module in their order; rank N writes its failures to report-N.json."""
    checks: dict[str, Callable[[], None]] = {name: f for name, f in module.items() if name.startswith("check_")}
    failures: dict[str, str] = {}
    done = []
    report = Path(os.environ["TEST_REPORT"]) / f"report-{RANK}.json"
    for name, check in checks.items():
        try:
            check()
        except Exception:
            failures[name] = traceback.format_exc()
        done.append(name)
        report.write_text(json.dumps({"done": done, "failures": failures}))
    sys.stdout.flush()
