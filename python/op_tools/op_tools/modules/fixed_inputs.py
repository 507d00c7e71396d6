"""What another run recorded, in place of what a module would be given."""

from collections import Counter
from pathlib import Path
from typing import Any

import torch

from op_tools.store.memory import MemoryReader, Record
from op_tools.store.recording import GRADIENTS, MODULE, BadRecording, rank, recordings

Label = tuple[str, int, str]  # a module, which of its runs, a place


class Fixed(torch.autograd.Function):
    """Has the value of another tensor, and passes gradients on as if it were the one that it stands for."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return value.clone()  # a view may not be written in place

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return gradients[0], None


class FixedInputs:
    """The inputs and gradients that the process of this rank recorded below `folder`. What is not used is counted in
    `left`, with the reason. Raises BadRecording."""

    def __init__(self, folder: Path, left: Counter[tuple[str, str]]) -> None:
        found = [one for one in recordings(folder) if one.rank == rank()]
        if not found:
            raise BadRecording(f"{folder} holds no recording of rank {rank()}")
        self._recording, self._left = found[0], left
        lines = self._recording.of(MODULE)
        if not lines:
            raise BadRecording(f"{self._recording.path} holds no modules; record them with --record DIR --modules")
        self._inputs: dict[Label, Record] = {
            (line["module"], line["number"], place): record
            for line in lines
            for place, record in line["inputs"].items()
        }
        self._gradients: dict[Label, Record] = {
            (line["module"], line["number"], line["place"]): line["gradient"] for line in self._recording.of(GRADIENTS)
        }

    def input(self, label: Label, own: torch.Tensor) -> torch.Tensor | None:
        """For an input, on its device and of its dtype; None where the other run has none that fits."""
        return self._value(self._inputs.get(label, {}), label, own)

    def gradient(self, label: Label, own: torch.Tensor) -> torch.Tensor | None:
        """The same for the gradient of a result."""
        return self._value(self._gradients.get(label, {}), label, own)

    def _value(self, record: Record, label: Label, own: torch.Tensor) -> torch.Tensor | None:
        if odd := _odd(record, own):
            path, _, place = label
            self._left[f"{path or 'the model'} {place}", f"not fixed, {odd}"] += 1
            return None
        try:
            value = MemoryReader(self._recording.root, torch.device("cpu")).tensor(record)
        except ValueError as error:
            raise BadRecording(str(error)) from None
        return value.to(device=own.device, dtype=own.dtype)


def _odd(record: Record, own: torch.Tensor) -> str:
    """Why the recorded tensor cannot stand for `own`; empty where it can."""
    if not record:
        return "the other run has no such tensor"
    if "tensor" not in record:
        return "the other run kept a sketch only (--whole)"
    if tuple(record["shape"]) != tuple(own.shape):
        return f"it has {tuple(own.shape)} and in the other run {tuple(record['shape'])}"
    return ""
