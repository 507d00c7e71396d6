"""Copies of a call's arguments that share memory among each other as the arguments do, and their way back.

An operator that is run on copies may write into them. What it writes goes back into the arguments that it was called
with: elements, and shapes where the call resizes.
"""

from collections.abc import Callable
from typing import Any

import torch

from op_tools.calls import OperatorCall
from op_tools.values import begin_of, extent, mapped, tensors_in

Cast = Callable[[torch.dtype], torch.dtype]


_VERSIONS = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
_MOST_GAPS = 16  # elements of memory for each of a tensor; one that lies further apart is copied without its gaps


def unchanged(dtype: torch.dtype) -> torch.dtype:
    return dtype


class CannotCopy(Exception):
    """The arguments are of a kind that has no copy; the text says which."""


class Copies:
    """Copies of the arguments of one call on `device`, their dtypes changed by `cast`; strides stay as they are.

    Raises CannotCopy for tensors without plain memory (sparse, quantized, subclasses, zeros of derivatives).
    """

    def __init__(self, call: OperatorCall, device: torch.device, cast: Cast = unchanged) -> None:
        self._device, self._cast = device, cast
        self._copies: dict[int, torch.Tensor] = {}  # id of an argument: its copy
        self._originals: dict[int, torch.Tensor] = {}  # id of a copy: its argument
        given = call.given
        tensors = list(dict(((id(tensor), tensor) for _, tensor in tensors_in(given))).values())
        for tensor in tensors:
            if (
                type(tensor) not in (torch.Tensor, torch.nn.Parameter)
                or tensor.layout is not torch.strided
                or tensor.is_quantized
            ):
                raise CannotCopy(f"a tensor of {type(tensor).__name__} with layout {tensor.layout}")
            if tensor._is_zerotensor():
                raise CannotCopy("a tensor of zeros that has no memory")
        self._copy_all(tensors)
        self.call = call.with_arguments(mapped(call.args, self._copied), mapped(call.kwargs, self._copied))

    def copy_of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The copy of one of the arguments."""
        return self._copies[id(tensor)]

    def given_back(self, call: OperatorCall, results: Any, home: torch.device) -> Any:
        """Writes what the copies' call has written into the arguments of `call`; `results` on `home`.

        Results that are copies of arguments become these arguments.
        """
        for name in call.overload.written:
            for _, tensor in tensors_in(call.given.get(name)):
                self._write_back(tensor)
        return mapped(results, lambda value: self._returned(value, home))

    def _copied(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self._copies[id(value)]
        if isinstance(value, torch.device):
            return self._device
        return self._cast(value) if isinstance(value, torch.dtype) and self._casts else value

    def _copy_all(self, tensors: list[torch.Tensor]) -> None:
        self._casts = any(self._cast(tensor.dtype) is not tensor.dtype for tensor in tensors)
        shared: dict[int, list[torch.Tensor]] = {}
        for tensor in tensors:
            own = id(tensor)  # of one without elements, which has no memory to share
            shared.setdefault(tensor.untyped_storage()._cdata if tensor.numel() else own, []).append(tensor)
        with torch.no_grad():
            for group in shared.values():
                alike = len({tensor.dtype for tensor in group}) == 1
                plain = not any(tensor.is_conj() or tensor.is_neg() for tensor in group)
                if len(group) > 1 and alike and plain:
                    self._copy_together(group)
                else:
                    for tensor in group:
                        self._keep(tensor, self._placed(tensor))

    def _moved(self, tensor: torch.Tensor) -> torch.Tensor:
        dense = tensor.detach().resolve_conj().resolve_neg()
        return dense.to(device=self._device, dtype=self._cast(tensor.dtype), copy=True)

    def _placed(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy that lies in its memory as `tensor` does: with its strides, as well aligned, and with its gaps."""
        copy, offset = self._moved(tensor), tensor.storage_offset() - begin_of([tensor])
        as_it_is = copy.stride() == tensor.stride() and not offset
        if as_it_is or tensor.is_conj() or tensor.is_neg() or extent(tensor) > _MOST_GAPS * tensor.numel():
            return copy
        memory = torch.zeros(offset + extent(tensor), dtype=copy.dtype, device=self._device)
        placed = memory.as_strided(tensor.shape, tensor.stride(), offset)
        own = tuple(slice(None, None if stride else 1) for stride in tensor.stride())
        placed[own].copy_(copy[own])  # what repeats is one element
        return placed

    def _copy_together(self, group: list[torch.Tensor]) -> None:
        """Of tensors with memory in common the memory is copied once, and each copy is a view of it."""
        begin = begin_of(group)
        end = max(tensor.storage_offset() + extent(tensor) for tensor in group)
        first = group[0].detach()
        memory = self._moved(first.as_strided((end - begin,), (1,), begin))
        for tensor in group:
            self._keep(tensor, memory.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() - begin))

    def _keep(self, tensor: torch.Tensor, copy: torch.Tensor) -> None:
        self._copies[id(tensor)] = copy
        self._originals[id(copy)] = tensor

    def _write_back(self, tensor: torch.Tensor) -> None:
        copy = self._copies[id(tensor)]
        with torch.no_grad(), torch._C._ExcludeDispatchKeyGuard(_VERSIONS):  # the call itself counts its writes
            if tensor.shape != copy.shape:
                tensor.resize_(copy.shape)
            tensor.detach().copy_(copy)

    def _returned(self, value: Any, home: torch.device) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        original = self._originals.get(id(value))
        return original if original is not None else value.to(home)
