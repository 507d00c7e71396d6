"""A worker process: reads a question a line, writes a line of JSON for each.

{"path": FILE, "host": BOOL} is answered by the names of the file's tests, with "test": NAME too by the outcome of that.
"""

import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from tools.torch_tests.collected import Collected


def main() -> None:
    # What tests print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import torch

    import torch_dipu

    torch_dipu.start()
    torch.set_num_threads(1)
    from torch.testing._internal.common_device_type import PrivateUse1TestBase

    # torch names classes of tests after the device from the first use on; used now, a name depends on nothing.
    PrivateUse1TestBase.setUpClass()
    known: dict[str, Collected] = {}
    # Tests that write to their folder find one that goes away.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for line in sys.stdin:
            print(json.dumps(_answer(known, json.loads(line))), file=answers, flush=True)


def _answer(known: dict[str, Collected], question: dict[str, Any]) -> dict[str, Any]:
    path = Path(question["path"])
    if question["path"] not in known:
        sys.path.insert(0, str(path.parent))  # files of tests import others beside them
        try:
            known[question["path"]] = Collected(path, question["host"])
        except Exception as error:
            return {"fault": "".join(traceback.format_exception_only(error)).strip(), "trace": traceback.format_exc()}
        finally:
            sys.path.remove(str(path.parent))
    tests = known[question["path"]]
    return tests.run(question["test"]) if "test" in question else {"tests": tests.names()}


if __name__ == "__main__":
    main()
