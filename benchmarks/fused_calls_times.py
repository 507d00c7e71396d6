"""Prints the microseconds of single calls on the device named: an optimizer's step over many parameters, and attention.

One process for one device; a line of JSON for each call. `cuda` is torch's own.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.nn import functional as F

ROUNDS, CALLS, WARM = 9, 20, 5
LAYERS, WIDTH = 60, 768  # a matrix and a vector each
BATCH, HEADS, LENGTH, SIZE = 8, 12, 512, 64


def optimizers(device: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Steps of AdamW, as torch does them by default and fused."""
    for fused in (False, True):
        shapes = [shape for _ in range(LAYERS) for shape in ((WIDTH, WIDTH), (WIDTH,))]
        parameters = [torch.randn(shape, device=device).requires_grad_() for shape in shapes]
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer = torch.optim.AdamW(parameters, lr=1e-3, fused=fused or None)
        yield f"AdamW of {len(parameters)} parameters{', fused' if fused else ''}", optimizer.step


def attentions(device: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Forward alone, then forward and backward."""
    for dtype, dropout in ((torch.bfloat16, 0.1), (torch.bfloat16, 0.0), (torch.float32, 0.1), (torch.float32, 0.0)):
        q, k, v = (
            torch.randn(BATCH, HEADS, LENGTH, SIZE, device=device, dtype=dtype).requires_grad_() for _ in range(3)
        )

        def attend(q: Tensor = q, k: Tensor = k, v: Tensor = v, dropout: float = dropout) -> Tensor:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)

        result = attend()
        gradient = torch.randn_like(result)

        def both(
            attend: Callable[[], Tensor] = attend,
            leaves: tuple[Tensor, ...] = (q, k, v),
            gradient: Tensor = gradient,
        ) -> object:
            return torch.autograd.grad(attend(), leaves, gradient)

        name = f"attention of {str(dtype).removeprefix('torch.')}{', dropout' if dropout else ''}"
        yield f"{name}, forward", attend
        yield f"{name}, forward and backward", both


def main() -> None:
    """Each call so many times between two waits for the device."""
    device = sys.argv[1]
    if device == "dipu":
        import torch_dipu

        torch_dipu.start()
    module = torch.get_device_module(device)
    for make in (optimizers, attentions):
        for name, call in make(device):
            rounds = []
            for number in range(WARM + ROUNDS):
                module.synchronize()
                start = time.perf_counter()
                for _ in range(CALLS):
                    call()
                module.synchronize()
                if number >= WARM:
                    rounds.append(1e6 * (time.perf_counter() - start) / CALLS)
            print(json.dumps({"name": name, "us": rounds}), flush=True)


if __name__ == "__main__":
    main()
