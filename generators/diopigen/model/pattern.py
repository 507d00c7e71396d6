"""Idioms of programs, as schemas/patterns.yaml says them: how each is written, and what becomes of it."""

from dataclasses import dataclass

from diopigen.diagnostics import Span
from diopigen.model.expr import Expr
from diopigen.model.op import Literal, Place
from diopigen.model.type import Type
from diopigen.vocabulary.dtype import DTypeSet

# What expressions of patterns call beside operators of torch.
OWN_CALLS: dict[str, int | None] = {
    "cast": 2,  # cast(x, f32): a conversion to a dtype; nothing where x has it
    "item": 2,  # item(max(x, -1, true), 0): one of several results
    "list": None,  # list(0, 1): of numbers or tensors
    "size": 2,  # size(x, -1): the length of a dimension
    "rank": 1,  # rank(x): how many dimensions
    "same": 2,  # same(k, v): whether two tensors have the same sizes
    "usual": 2,  # usual(scale, 1 / sqrt(size(q, -1))): a number as it is; none for a symbol that is the other one
    "fixed": 1,  # fixed(size(x, -1)): whether a size is a number, and no symbol
}
WORDS: dict[str, Literal] = {"true": True, "false": False, "none": None}
ANYTHING = "_"  # an argument that may be what it likes


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What an idiom is computed from: a node of the graph, or a number."""

    name: str  # e.g. "weight"
    type: Type  # e.g. Tensor<T>?
    default: Literal  # where a spelling does without; e.g. 1
    has_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An expression, and where it stands."""

    expr: Expr  # e.g. wide * rsqrt(mean_square + eps)
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """One way to write the whole idiom."""

    written: Written
    sets: tuple[tuple[str, Literal], ...]  # e.g. (("causal", True),): the inputs that this spelling decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """How many launches the idiom is, alone in a program."""

    forward: int
    backward: int | None  # None: it has no gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One idiom."""

    name: str  # e.g. "rms_norm"
    doc: str
    by: tuple[
        Place, ...
    ]  # e.g. ("flash_attention", "multi_head_attention"): ops, the first that takes the dtype serves
    own: bool  # it pays only where those functions are no portable kernels
    inputs: tuple[Input, ...]
    without_gradient: tuple[Place, ...]  # e.g. ("cos", "sin"): inputs that are constants of a program
    where: tuple[tuple[str, DTypeSet], ...]  # e.g. (("T", float),)
    parts: tuple[tuple[str, tuple[Written, ...]], ...]  # by name: the ways to write what spellings share
    match: tuple[Spelling, ...]
    when: tuple[Written, ...]  # all of them hold where the idiom is what it looks like
    becomes: Written | None  # None: fused loops are the best form
    launches: Launches
    examples: tuple[tuple[tuple[str, Literal], ...], ...]  # e.g. ((("x", (4, 16)), ("eps", 1e-6)),)
    span: Span

    @property
    def expressions(self) -> tuple[Written, ...]:
        """Every expression that is matched."""
        shared = tuple(written for _, spellings in self.parts for written in spellings)
        return (*shared, *(spelling.written for spelling in self.match))
