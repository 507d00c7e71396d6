"""Running programs on the CPU and on the device, and what differs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tools.random_programs.programs import DTYPES, Program, drawn

_CLOSE = 2e-4  # of the largest element: sums in another order, over ten steps
_Function = Callable[..., list[list[torch.Tensor]]]
Expected = tuple[Program, list[torch.Tensor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A program whose result differs from what torch gives on the CPU."""

    program: Program
    mode: str  # "eager" or "compiled"
    what: str

    def __str__(self) -> str:
        lines = "\n".join(f"    {line.replace('$', '')}" for line in self.program.lines)
        shapes = ", ".join(f"v{at}: {tuple(x.shape)}" for at, x in enumerate(self.program.inputs))
        return f"seed {self.program.seed}, {self.program.dtype}, {self.mode}: {self.what}\n    {shapes}\n{lines}"


def reported(group: tuple[int, int, int]) -> tuple[list[str], int]:
    """What differs of the programs of some seeds, as text, and how many programs were compared.

    A group is the first seed, how many, and which dtype by its number.
    """
    import torch_dipu

    torch_dipu.start()
    torch.set_num_threads(1)
    first, count, at = group
    programs = [drawn(seed, DTYPES[at % len(DTYPES)]) for seed in range(first, first + count)]
    pairs = comparable(programs)
    return [str(difference) for difference in differences(pairs)], len(pairs)


def comparable(programs: Sequence[Program]) -> list[Expected]:
    """The programs of which torch, eager and compiled, gives one answer on the CPU, each with that answer."""
    answers = ((program, _on_cpu(program)) for program in programs)
    return [(program, answer) for program, answer in answers if answer is not None]


def differences(pairs: Sequence[Expected]) -> list[Difference]:
    """What differs of some programs, which are compiled as one graph, and one by one where that fails."""
    programs = [program for program, _ in pairs]
    found: list[Difference] = []
    for mode, backend in (("eager", None), ("compiled", "diopi")):
        try:
            results = _run(programs, "dipu", backend)
        except Exception as error:
            if len(pairs) == 1:
                found.append(_differs(programs[0], mode, _first_line(error)))
                continue
            return [difference for pair in pairs for difference in differences([pair])]
        for (program, answer), made in zip(pairs, results, strict=True):
            what = _difference(made, answer)
            if what is not None:
                found.append(_differs(program, mode, what))
    return found


def _differs(program: Program, mode: str, what: str) -> Difference:
    return Difference(program=program, mode=mode, what=what)


def _on_cpu(program: Program) -> list[torch.Tensor] | None:
    """What torch's compiled function gives; None where eager mode gives another answer, or nothing can be compiled."""
    (eager,) = _run([program], "cpu", None)
    try:
        (traced,) = _run([program], "cpu", "aot_eager")
    except Exception:  # of any kind: what torch's own compiler cannot do says nothing of the device, and is counted
        return None
    return traced if _difference(traced, eager) is None else None


def _run(programs: Sequence[Program], device: str, backend: str | None) -> list[list[torch.Tensor]]:
    """The values of each program at its end, on the CPU; those of arguments among them."""
    function = _function(programs)
    arguments = [x.to(device, copy=True) for program in programs for x in program.inputs]
    torch.compiler.reset()
    made = (function if backend is None else torch.compile(function, backend=backend, dynamic=False))(*arguments)
    if device != "cpu":  # what a result wrongly shares with memory that is free is written here
        _occupied = [torch.full((64,), 77.0, device=device) for _ in range(64)]
    return [[value.resolve_conj().resolve_neg().cpu() for value in results] for results in made]


def _function(programs: Sequence[Program]) -> _Function:
    """One function for some programs; it returns the values of each."""
    prefixes = [f"p{at}_" for at in range(len(programs))]
    names = [f"{prefix}v{at}" for prefix, p in zip(prefixes, programs, strict=True) for at in range(len(p.inputs))]
    lines = [f"def run({', '.join(names)}):"]
    for prefix, program in zip(prefixes, programs, strict=True):
        lines += [f"    {line}" for line in program.body(prefix)]
    results = [
        f"[{', '.join(name.replace('$', prefix) for name in program.results)}]"
        for prefix, program in zip(prefixes, programs, strict=True)
    ]
    space: dict[str, Any] = {"torch": torch}
    exec("\n".join([*lines, f"    return [{', '.join(results)}]"]), space)
    function: _Function = space["run"]
    return function


def _difference(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> str | None:
    for at, (one, other) in enumerate(zip(found, expected, strict=True)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"v{at} is {one.dtype} of {tuple(one.shape)}, not {other.dtype} of {tuple(other.shape)}"
        exact = not (one.dtype.is_floating_point or one.dtype.is_complex)
        scale = 0.0 if exact or not other.numel() else float(other.abs().max())
        if not torch.allclose(one, other, rtol=0, atol=0 if exact else _CLOSE * (1 + scale), equal_nan=True):
            return f"v{at} is {one.flatten()[:6].tolist()}, not {other.flatten()[:6].tolist()}"
    return None


def _first_line(error: Exception) -> str:
    return " ".join(line for line in str(error).splitlines() if line.strip())[:300] or type(error).__name__
