"""Trains models under OpAutoCompare on devices that are right: whatever it calls wrong is wrong of it.

`python -m tools.op_compare`: the demo's MLP, ResNet and LLaMA, and models of transformers.
"""

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import torch

import op_tools
import torch_dipu

_ROOT = Path(__file__).resolve().parents[1]
_DEMO = ("mlp", "resnet", "llama")
_FAMILIES = ("bert", "gpt2", "llama", "t5", "vit", "mixtral", "whisper", "convnext")


def _demo_step(name: str) -> tuple[torch.nn.Module, Callable[[], torch.Tensor]]:
    sys.path.insert(0, str(_ROOT / "demo"))
    from models import TASKS, loss_of

    task = next(task for task in TASKS if task.name.lower() == name)
    torch.manual_seed(0)
    model, (inputs, target) = task.model(), task.batch()

    def step() -> torch.Tensor:
        device = next(model.parameters()).device
        return loss_of(model(inputs.to(device)), target.to(device))  # type: ignore[no-any-return]

    return model, step


def _family_step(name: str) -> tuple[Any, Any]:
    from tools.hf_models.training import without_dropout
    from tools.hf_models.zoo import built

    model, step = built(name)
    with suppress(ValueError):  # of models that have only the other one
        model.set_attn_implementation("sdpa")
    return without_dropout(model), step


def compared(model: Any, step: Any, device: str, optimizer: str, steps: int) -> op_tools.OpAutoCompare:
    """Trains on `device` with AdamW or SGD under the tool."""
    from tools.hf_models.training import train

    with op_tools.OpAutoCompare(".*", table=False, write=lambda _: None) as tool:
        train(model, step, device, optimizer, steps)
    return tool


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", multiple=True, metavar="NAME", help="Only these models, e.g. 'demo llama', 'bert'.")
@click.option("--device", multiple=True, default=("cpu", "dipu"), show_default=True)
@click.option("--optimizer", multiple=True, default=("adamw", "sgd"), show_default=True)
@click.option("--steps", type=click.IntRange(1), default=2, show_default=True)
def main(only: tuple[str, ...], device: tuple[str, ...], optimizer: tuple[str, ...], steps: int) -> None:
    """Train models on devices that are right and count the calls that OpAutoCompare calls wrong.

    Exit codes: 0 none, 1 some, 2 wrong usage. Families of transformers need `pip install -e .[models]`.
    """
    torch_dipu.start()
    torch.set_num_threads(1)
    models = {f"demo {name}": (_demo_step, name) for name in _DEMO} | {n: (_family_step, n) for n in _FAMILIES}
    unknown = [name for name in only if name not in models]
    if unknown:
        raise click.UsageError(f"there is no model '{unknown[0]}'; choose of {', '.join(models)}")
    wrong = 0
    for name in only or tuple(models):
        for kind in device:
            for update in optimizer:
                begin, (make, which) = time.perf_counter(), models[name]
                tool = compared(*make(which), kind, update, steps)
                wrong += len(tool.mismatches)
                skipped, calls = sum(tool.skipped.values()), sum(tool.compared.values()) + len(tool.mismatches)
                counts = f"{calls:6} calls of {len(tool.compared):3} operators, {len(tool.mismatches)} wrong"
                seconds = time.perf_counter() - begin
                click.echo(f"{name:12} {kind:5} {update:6} {counts}, {skipped} not compared {seconds:6.0f} s")
                for mismatch in tool.mismatches[:3]:
                    click.echo(f"    {mismatch.text[:400]}")
    click.echo(f"{wrong} calls are called wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
