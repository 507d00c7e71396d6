"""A worker process: `python -m op_tools.torch_tests.worker DEVICE [NAME] DESCRIPTOR`.

It reads a question a line and writes a line of JSON for each into the file descriptor; NAME is for the pool.
{"suite": FILE or "opinfo", "host": BOOL, "hardware": [WORD], "all_dtypes": BOOL, "coverage": BOOL} is answered by the
names of the suite's tests, with "test": NAME too by the outcome of that.
"""

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

import torch

from op_tools.torch_tests.collected import Collected
from op_tools.torch_tests.device import start, test_base
from op_tools.torch_tests.opinfo.entries import NAME, Entries


def main() -> None:
    device, descriptor = sys.argv[1], int(sys.argv[-1])
    os.set_inheritable(descriptor, False)
    start(device)
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # the CPU's floats keep all their bits in convolutions, too
    base = test_base(device)
    # torch names classes of tests after the device from the first use on; used now, a name depends on nothing.
    base.setUpClass()  # type: ignore[attr-defined]
    known: dict[str, Collected | Entries] = {}
    with tempfile.TemporaryDirectory() as folder, os.fdopen(descriptor, "w", encoding="utf-8") as answers:
        os.chdir(folder)  # tests that write to their folder find one that goes away
        for line in sys.stdin:
            answer = _answer(known, json.loads(line), device, base)
            # A device that the test lost ends the process here, and no other test fails of it.
            torch.get_device_module(device).synchronize()
            print(json.dumps(answer), file=answers, flush=True)


def _answer(known: dict[str, Collected | Entries], question: dict[str, Any], device: str, base: type) -> dict[str, Any]:
    suite = question["suite"]
    if suite not in known:
        try:
            known[suite] = _loaded(question, device, base)
        except Exception as error:
            return {"fault": "".join(traceback.format_exception_only(error)).strip(), "trace": traceback.format_exc()}
    tests = known[suite]
    return tests.run(question["test"]) if "test" in question else {"tests": tests.names()}


def _loaded(question: dict[str, Any], device: str, base: type) -> Collected | Entries:
    if question["suite"] == NAME:
        return Entries(device, question["all_dtypes"], question["coverage"])
    path = Path(question["suite"])
    sys.path.insert(0, str(path.parent))  # files of tests import others beside them
    try:
        return Collected(path, base, question["host"], tuple(question["hardware"]))
    finally:
        sys.path.remove(str(path.parent))


if __name__ == "__main__":
    main()
