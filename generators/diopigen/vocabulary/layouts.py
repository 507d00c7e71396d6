"""The memory orders that schemas and convert_config.yaml name, and what they ask of a tensor of each rank."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One memory order of tensors."""

    name: str  # e.g. "NHWC"
    rank: int | None  # e.g. 4, of the tensors that it is said of; None for ANY
    last: bool = False  # channels innermost, of tensors of this rank alone; else contiguous, of tensors of any rank

    @property
    def word(self) -> str:
        """In ids of cases. e.g. "nhwc"."""
        return self.name.lower()


ANY = "ND"
IMAGES = Layout(name="NHWC", rank=4, last=True)
LAYOUTS = (
    Layout(name="NCL", rank=3),
    Layout(name="NCHW", rank=4),
    Layout(name="NCDHW", rank=5),
    Layout(name="NLC", rank=3, last=True),
    IMAGES,
    Layout(name="NDHWC", rank=5, last=True),
    Layout(name=ANY, rank=None),
)
NAMES = tuple(layout.name for layout in LAYOUTS)
LAST = {layout.name: layout.rank for layout in LAYOUTS if layout.last}
FIRST = tuple(layout.name for layout in LAYOUTS if not layout.last and layout.name != ANY)

CONTIGUOUS = "contiguous"
_RANKS = {layout.word: layout.rank for layout in LAYOUTS}


def rank_of(word: str) -> int | None:
    """The rank of the tensors that an order is said of, as ids of cases write it. e.g. 4 for "nhwc"; None for ""."""
    return _RANKS.get(word)


def orders(names: tuple[str, ...]) -> tuple[str, ...]:
    """What `names` come to, each once. e.g. ("NHWC", "contiguous") for ("NHWC", "NCHW", "NCL")."""
    return tuple(dict.fromkeys(CONTIGUOUS if name in FIRST else name for name in names))


def of_rank(names: tuple[str, ...], rank: int | None) -> tuple[str, ...]:
    """The orders that are taken of a tensor of `rank`, the first is made; empty: any. None: a rank that has no LAST."""
    return tuple(order for order in orders(names) if order == CONTIGUOUS or LAST[order] == rank)


def own_ranks(names: tuple[str, ...]) -> tuple[int, ...]:
    """The ranks that take other orders than tensors of any other rank."""
    ranks = (rank for rank in LAST.values() if rank is not None)
    return tuple(rank for rank in ranks if of_rank(names, rank) != of_rank(names, None))
