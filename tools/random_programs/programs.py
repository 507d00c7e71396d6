"""Drawing programs: lines of Python, one operator each, over a few tensors that share memory in many ways."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

DTYPES = (torch.float32, torch.int64, torch.complex64)
_STEPS = 10
_SHAPES = ((4, 6), (6, 4), (3, 4, 2), (5,), (4, 4))

# From what is drawn with and the text of one tensor and the tensor itself to an expression; None where it has no such.
Draw = Callable[[Random, str, torch.Tensor], "str | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """`lines` name values $v0, $v1 ...; the first are arguments, and all of `results` are returned."""

    seed: int
    dtype: torch.dtype
    inputs: tuple[torch.Tensor, ...]
    lines: tuple[str, ...]
    results: tuple[str, ...]

    def body(self, prefix: str) -> list[str]:
        """The lines with names of their own."""
        return [line.replace("$", prefix) for line in self.lines]


def _dim(random: Random, x: torch.Tensor) -> int:
    return random.randrange(x.dim()) if x.dim() else 0


def _number(random: Random, x: torch.Tensor) -> str:
    if x.dtype.is_complex:
        return random.choice(("1j", "(0.5-0.25j)", "0.5", "-1"))
    return random.choice(("0.5", "-1", "2")) if x.dtype.is_floating_point else random.choice(("3", "-1", "7"))


def _sliced(random: Random, name: str, x: torch.Tensor) -> str | None:
    if x.dim() == 0:
        return None
    dim = _dim(random, x)
    begin = random.randrange(max(1, x.size(dim)))
    end, step = random.randint(begin, x.size(dim)), random.choice((1, 1, 2))
    return f"{name}[{':, ' * dim}{begin}:{end}:{step}]"


def _with_dim(text: str) -> Draw:
    return lambda random, name, x: text.format(name, _dim(random, x)) if x.dim() and x.numel() else None


def _plain(text: str) -> Draw:
    return lambda random, name, x: text.format(name)


def _real(draw: Draw) -> Draw:
    return lambda random, name, x: None if x.dtype.is_complex else draw(random, name, x)


def _complex(draw: Draw) -> Draw:
    return lambda random, name, x: draw(random, name, x) if x.dtype.is_complex else None


def _with_number(text: str) -> Draw:
    return lambda random, name, x: text.format(name, _number(random, x))


_VIEWS: tuple[Draw, ...] = (
    _sliced,
    _sliced,
    lambda random, name, x: f"{name}.transpose({_dim(random, x)}, {_dim(random, x)})" if x.dim() else None,
    _with_dim("{0}.select({1}, 0)"),
    _with_dim("{0}.unsqueeze({1})"),
    _with_dim("{0}.unsqueeze({1}).expand_as({0}.unsqueeze({1}))"),
    _with_dim("{0}.split(2, {1})[0]"),
    _with_dim("{0}.unfold({1}, 1, 1)"),
    lambda random, name, x: f"{name}.diagonal()" if x.dim() > 1 else None,
    lambda random, name, x: f"{name}.view(-1)" if x.is_contiguous() else None,
    lambda random, name, x: f"{name}[None].expand(2, {', '.join(map(str, x.shape))})" if 0 < x.dim() < 4 else None,
    _plain("{0}.detach()"),
    _plain("torch._neg_view({0})"),
    _complex(_plain("{0}.conj()")),
    _complex(_plain("{0}.real")),
    _complex(_plain("{0}.imag")),
    _complex(lambda random, name, x: None if x.is_conj() else f"torch.view_as_real({name})"),
    lambda random, name, x: f"{name}.view(torch.int32)" if x.dtype == torch.int64 and x.is_contiguous() else None,
)
_WRITES: tuple[Draw, ...] = (
    _with_number("{0}.mul_({1})"),
    _with_number("{0}.add_({1})"),
    _with_number("{0}.fill_({1})"),
    _plain("{0}.zero_()"),
    _plain("{0}.neg_()"),
    _real(_plain("{0}.clamp_(-3, 3)")),
    _real(_with_number("{0}.masked_fill_({0} > 1, {1})")),
)
_FRESH: tuple[Draw, ...] = (
    _with_number("{0} * {1}"),
    _with_number("{0} + {1}"),
    _with_number("{1} - {0}"),
    _with_dim("{0}.sum({1})"),
    _with_dim("{0}.sum({1}, keepdim=True)"),
    _with_dim("{0}.cumsum({1})"),
    _with_dim("{0}.flip({1})"),
    _with_dim("{0}.roll(1, {1})"),
    _with_dim("{0}.index_select({1}, torch.arange({0}.size({1}) - 1, -1, -1, device={0}.device))"),
    _with_dim("torch.cat(({0}, {0}), {1})"),
    _with_dim("torch.stack(({0}, {0}), {1})"),
    _real(_with_dim("{0}.sort({1})[0]")),
    _real(_with_dim("{0}.amax({1})")),
    _real(_with_number("torch.where({0} > 0, {0}, {1})")),
    _real(_plain("{0}.clamp(min=-2)")),
    _complex(_plain("torch.conj_physical({0})")),
    _plain("{0}.clone()"),
    _plain("{0}.contiguous()"),
    lambda random, name, x: f"{name}.tril()" if x.dim() > 1 else None,
    lambda random, name, x: f"{name} @ {name}.mT" if x.dim() == 2 and x.numel() else None,
    _with_number("torch.full_like({0}, {1}) + {0}"),
    _with_number("torch.nn.functional.pad({0}.real, (1, 2), value=2)"),
)
_PAIRS = ("{0} + {1}", "{0} * {1}", "{0} - {1}", "torch.where({1} == {1}, {0}, {1})")
_PAIR_WRITES = ("{0}.copy_({1})", "{0}.add_({1})", "{0}.sub_({1})")


def drawn(seed: int, dtype: torch.dtype) -> Program:
    """The program of a seed; what torch refuses of it on the CPU is left out."""
    random = Random(f"{seed} {dtype}")
    generator = torch.Generator().manual_seed(seed)
    inputs = tuple(_input(random.choice(_SHAPES), dtype, generator) for _ in range(2))
    values = {f"$v{at}": tensor.clone() for at, tensor in enumerate(inputs)}
    lines: list[str] = []
    for _ in range(_STEPS):
        line = _line(random, values)
        if line is not None and _runs(line, values):
            lines.append(line)
    return Program(seed=seed, dtype=dtype, inputs=inputs, lines=tuple(lines), results=tuple(values))


def _input(shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator) -> torch.Tensor:
    if dtype == torch.int64:
        return torch.randint(-5, 6, shape, generator=generator)
    return torch.randn(shape, dtype=dtype, generator=generator)


def _line(random: Random, values: dict[str, torch.Tensor]) -> str | None:
    name = random.choice(list(values))
    x, kind = values[name], random.random()
    if kind < 0.15 and (other := _partner(random, values, name)) is not None:
        return random.choice(_PAIR_WRITES).format(name, other)
    if kind < 0.3:
        return random.choice(_WRITES)(random, name, x)
    made = f"$v{len(values)} = "
    if kind < 0.45 and (other := _partner(random, values, name)) is not None:
        return made + random.choice(_PAIRS).format(name, other)
    text = random.choice(_VIEWS if kind < 0.75 else _FRESH)(random, name, x)
    return None if text is None else made + text


def _partner(random: Random, values: dict[str, torch.Tensor], name: str) -> str | None:
    """Another tensor whose elements go with those of the first."""
    fits = [other for other, tensor in values.items() if _broadcasts(tensor, values[name]) and other != name]
    return random.choice(fits) if fits else None


def _broadcasts(one: torch.Tensor, other: torch.Tensor) -> bool:
    try:
        return torch.broadcast_shapes(one.shape, other.shape) == other.shape
    except RuntimeError:
        return False


def _runs(line: str, values: dict[str, torch.Tensor]) -> bool:
    """Runs a line on the CPU; False where torch refuses it, or numbers grow out of what can be compared."""
    names: dict[str, Any] = {name.replace("$", "_"): tensor for name, tensor in values.items()}
    try:
        exec(line.replace("$", "_"), {"torch": torch}, names)
    except (RuntimeError, IndexError, ValueError, TypeError):
        return False
    made = {name.replace("_", "$"): tensor for name, tensor in names.items()}
    if any(tensor.numel() and float(tensor.detach().abs().max()) > 1e4 for tensor in made.values()):
        # A write stays: what follows is drawn from what there is.
        return " = " not in line
    values.update(made)
    return True
