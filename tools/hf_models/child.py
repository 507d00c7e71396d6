"""One model in a process of its own: `python -m tools.hf_models.child MODEL`; the last line printed is the result."""

import argparse
import json
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch

import torch_dipu
from tools.hf_models.agreement import Tensors, differences
from tools.hf_models.outcome import agrees
from tools.hf_models.training import Run, nudge, train, without_dropout
from tools.hf_models.zoo import built

_NUDGES = 3  # changed copies of the weights that say how sensitive a model is


def main() -> None:
    """Trains on the CPU, then on dipu, and prints how far they agree and which operators fell back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="e.g. bert")
    parser.add_argument("--optimizer", choices=("adamw", "sgd"), default="adamw")
    parser.add_argument("--attention", choices=("eager", "sdpa"), default="sdpa")
    parser.add_argument("--compile", action="store_true", dest="compiled")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch_dipu.start()
    torch.set_num_threads(1)
    cpu = _run(options, "cpu")
    torch.dipu.fallback.reset()
    dipu = _run(options, "dipu", backend="diopi" if options.compiled else None)
    fallbacks = [[row.operator, row.cause, row.count] for row in torch.dipu.fallback.report()]
    result = _compared(dipu, cpu)
    if not agrees(result):
        nudged = [_run(options, "cpu", nudge_seed=seed) for seed in range(_NUDGES)]
        result = {**_compared(dipu, cpu, nudged), "sensitive": True}
    print(json.dumps({**result, "fallbacks": fallbacks, "compiled": _graphs() if options.compiled else None}))


def _graphs() -> dict[str, Any]:
    """What became of the graphs of the compiled model."""
    from torch._dynamo.utils import counters

    from dicp import explain

    islands = sorted({name for report in explain.reports() for name in report.islands})
    return {**explain.figures(), "breaks": sum(counters["graph_break"].values()), "islands of": islands}


def _run(options: argparse.Namespace, device: str, nudge_seed: int | None = None, backend: str | None = None) -> Run:
    model, step = built(options.model)
    with suppress(ValueError):  # of models, or parts of them, that have only the other one
        model.set_attn_implementation(options.attention)
    if nudge_seed is not None:
        nudge(model, nudge_seed)
    return train(without_dropout(model), step, device, options.optimizer, backend)


def _compared(found: Run, expected: Run, nudged: Sequence[Run] = ()) -> dict[str, Any]:
    def rows(part: Callable[[Run], Tensors]) -> list[str]:
        off = differences(part(found), part(expected), [part(run) for run in nudged])
        return [f"{row.name}: off by {row.largest:.3g} at a scale of {row.scale:.3g}" for row in off]

    return {
        "losses": {"cpu": expected.losses, "dipu": found.losses},
        "loss_differences": rows(_losses),
        "gradients": len(expected.gradients),
        "gradient_differences": rows(lambda run: run.gradients),
        "weights": len(expected.weights),
        "weight_differences": rows(lambda run: run.weights),
        "tied": len(expected.tied),
        "still_tied": found.tied == expected.tied,
        "sensitive": False,
    }


def _losses(run: Run) -> Tensors:
    return {f"step {number}": torch.tensor(loss) for number, loss in enumerate(run.losses)}


if __name__ == "__main__":
    main()
