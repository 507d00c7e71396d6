"""What a call should give: the same operator on the CPU, on copies of its arguments, floats in float64 where it can
be."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from diopi_conformance.expected.sensitivity import Inputs, sensitivity
from diopi_conformance.judgement.measured import magnitude
from diopi_conformance.judgement.tolerance import Measure, Terms
from diopi_conformance.values.elements import Array
from diopigen.vocabulary.torch_dtypes import wide_dtype
from op_tools import casts
from op_tools.calls import OperatorCall
from op_tools.clean_state import clean_state
from op_tools.contract import entry_of
from op_tools.copies import CannotCopy, Cast, Copies, unchanged
from op_tools.devices import CPU
from op_tools.host_forms import on_host
from op_tools.judgement import numbers
from op_tools.values import tensors_in

_LARGEST = 1 << 22  # elements of the arguments: beyond them the terms of a result are not measured


class NoReference(Exception):
    """The CPU cannot say what the call should give; the text says why."""


class Reference:
    """Of one call, made before the call runs: it keeps copies of the arguments as they are then."""

    def __init__(self, call: OperatorCall) -> None:
        """Raises NoReference for arguments without plain memory."""
        self._call = call
        try:
            with clean_state():
                self._before = Copies(call, CPU)
        except CannotCopy as reason:
            raise NoReference(str(reason)) from None
        self.outputs: dict[str, torch.Tensor] = {}  # by place, e.g. "result[0]", "self"
        self._random = np.random.default_rng(call.number)

    @property
    def before(self) -> OperatorCall:
        """The call on copies of its arguments as they were."""
        return self._before.call

    def harmed(self) -> list[str]:
        """The arguments that changed though the operator only reads them; to be asked after the call, before run()."""
        copies = dict(tensors_in(self._before.call.given))
        given, names = self._call.given, self._call.overload.written
        written = {
            _memory(tensor)
            for name in (*names, *self._call.overload.scratch)
            for _, tensor in tensors_in(given.get(name))
        }
        read = [(place, tensor) for place, tensor in tensors_in(given) if _memory(tensor) not in written]
        with clean_state():
            return [place for place, tensor in read if _changed(tensor, copies[place])]

    def run(self) -> None:
        """Computes the outputs. Raises NoReference where the CPU has no kernel for it."""
        reason: Exception | None = None
        for cast in self._casts():
            try:
                with clean_state():
                    self.outputs = _outputs(Copies(self._before.call, CPU, cast).call)
                return
            except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
                reason = error
        raise NoReference(str(reason).partition("\n")[0])

    def dtypes(self) -> dict[str, torch.dtype]:
        """The dtypes of the outputs where nothing is widened; empty where the CPU has no kernel for it."""
        try:
            with clean_state():
                return {place: tensor.dtype for place, tensor in _outputs(Copies(self._before.call, CPU).call).items()}
        except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
            return {}

    def measure(self, place: str) -> Measure:
        """The terms of one output, measured when they are asked for."""

        def terms() -> Terms:
            if self._terms is None:
                self._terms = self._measured()
            exact = numbers(self.outputs[place])
            length = max((t.numel() for _, t in tensors_in(self._before.call.given)), default=1)
            return self._terms.get(place) or Terms(magnitude=np.full(exact.shape, magnitude(exact)), length=length)

        return terms

    @property
    def inputs(self) -> Mapping[str, Array]:
        """The values of the arguments, by place."""
        return {place: numbers(tensor) for place, tensor in tensors_in(self._before.call.given)}

    _terms: dict[str, Terms] | None = None

    def _casts(self) -> tuple[Cast, ...]:
        """What to compute in, the best first."""
        own = casts.of_reference(self._call.title) or casts.of_reference(self._call.overload.packet)
        entry = entry_of(self._call.overload)
        if own is not None:
            return (lambda dtype: own.get(dtype, dtype), unchanged)
        if entry is not None and entry.exact:  # copies of what is there
            return (unchanged,)
        return (wide_dtype, unchanged)

    def _measured(self) -> dict[str, Terms]:
        call = Copies(self._before.call, CPU, wide_dtype).call
        if sum(t.numel() for _, t in tensors_in(call.given)) > _LARGEST:
            return {}

        def answer(inputs: Inputs) -> dict[str, Array] | None:
            try:
                changed = call.with_arguments((), dict(inputs))
                found = _outputs(Copies(changed, CPU).call)
            except (RuntimeError, ValueError, IndexError):
                return None
            return {place: numbers(tensor) for place, tensor in found.items()}

        return sensitivity(
            answer, {k: list(v) if isinstance(v, tuple) else v for k, v in call.given.items()}, self._random
        )


def _outputs(call: OperatorCall) -> dict[str, torch.Tensor]:
    """What a call gives and writes, by place. It is run."""
    return outputs_of(call, on_host(call))


def outputs_of(call: OperatorCall, results: Any) -> dict[str, torch.Tensor]:
    """The results of a call that ran, and the arguments that it wrote, each once."""
    written = {name: call.given.get(name) for name in call.overload.written}
    found = dict(tensors_in({name: written[name] for name in sorted(written)}))
    known = {id(tensor) for tensor in found.values()}
    given = {place: tensor for place, tensor in tensors_in(results, "result") if id(tensor) not in known}
    return found | {place: tensor for place, tensor in given.items() if place != call.overload.private}


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _changed(now: torch.Tensor, before: torch.Tensor) -> bool:
    """Whether elements are others than they were; NaN stays NaN."""
    host = now.detach().resolve_conj().resolve_neg().cpu()
    if host.shape != before.shape:
        return True
    return not bool(((host == before) | ((host != host) & (before != before))).all())
