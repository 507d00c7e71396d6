"""Which calls wrote a tensor's memory."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from op_tools.calls import OperatorCall

_MOST = 64  # writes into parts of one storage that are told apart

Source = tuple[int, str]  # a call's number and the place among its outputs, e.g. (17, "result[0]")


class Provenance:
    """Follows storages, whatever views look at them. Those that are gone are forgotten in time."""

    def __init__(self) -> None:
        # The reference keeps a storage's address from being given to another one.
        self._writers: dict[int, tuple[StorageWeakRef, tuple[Source, ...]]] = {}
        self._limit = 1 << 12

    def sources(self, tensor: torch.Tensor) -> tuple[Source, ...]:
        """The outputs of calls that it is made of: one that filled its memory, and those that wrote parts since."""
        found = self._writers.get(tensor.untyped_storage()._cdata)
        return () if found is None else found[1]

    def note(self, call: OperatorCall, outputs: dict[str, torch.Tensor]) -> None:
        """After a call that computes: what it wrote and made is its own."""
        for place, tensor in outputs.items():
            self._set(tensor, (call.number, place))

    def _set(self, tensor: torch.Tensor, source: Source) -> None:
        storage = tensor.untyped_storage()
        fresh = (StorageWeakRef(storage), ())  # type: ignore[no-untyped-call]
        reference, known = self._writers.get(storage._cdata) or fresh
        part = tensor.numel() * tensor.element_size() < storage.nbytes()
        self._writers[storage._cdata] = (reference, (*known[1 - _MOST :], source) if part else (source,))
        if len(self._writers) > self._limit:
            lost = [key for key, (kept, _) in self._writers.items() if kept.expired()]  # type: ignore[no-untyped-call]
            for key in lost:
                del self._writers[key]
            self._limit = max(1 << 12, 2 * len(self._writers))
