"""The process that compiles: gets batches of cases, answers with their outcomes, a line of JSON each.

Started as `python -m diopi_conformance.compiled.worker OPTIONS`, with options as JSON. A program that crashes takes
this process with it, and only this process.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from diopi_conformance.cases.model_cases import model_cases
from diopi_conformance.cases.plan import read_plan
from diopi_conformance.cases.variants import Variant, varied
from diopi_conformance.process.reaper import keep


def main() -> int:
    """Serves until the input ends."""
    keep()
    options: dict[str, Any] = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what operators print is no answer
    os.environ.setdefault("DICP_CACHE", "")

    import torch

    import torch_dipu
    from dicp import explain
    from dicp.backend import backend, vendor_target
    from diopi_conformance.compiled.batch import BatchContext, outcomes

    torch_dipu.start()
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # the references keep all digits of float32 in convolutions, too
    # Operators of tensors whose sizes are symbols are hardly met twice: looking for them takes longer than they do.
    torch._dynamo.config.fake_tensor_cache_enabled = not options["dynamic"]
    target = vendor_target()
    if options["level"] is not None:
        target = replace(target, flags=(*target.flags, f"-O{options['level']}"))
    compiler = backend("diopi", lambda: target)
    plan = read_plan(Path(options["plan"]))
    every = plan.cases + model_cases(plan, Path(options["models"]))
    cases = {case.id: case for case in varied(plan, every, Variant(**options["variant"]))}
    setting = BatchContext(device="dipu", backend=compiler, dynamic=options["dynamic"])
    for line in sys.stdin:
        for outcome in outcomes(plan, [cases[name] for name in json.loads(line)], setting):
            print(json.dumps(outcome.document()), file=answers)
        print(json.dumps({"done": explain.figures()}), file=answers, flush=True)
        explain.forget()
    return 0


if __name__ == "__main__":
    sys.exit(main())
