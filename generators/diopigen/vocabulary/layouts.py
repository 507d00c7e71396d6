"""The memory orders that `layout` of convert_config.yaml names, and what they ask of a tensor of each rank."""

FIRST = ("NCL", "NCHW", "NCDHW")  # contiguous, of tensors of any rank
LAST = {"NLC": 3, "NHWC": 4, "NDHWC": 5}  # channels innermost, of tensors of this rank alone
ANY = "ND"
LAYOUTS = (*FIRST, *LAST, ANY)

CONTIGUOUS = "contiguous"


def orders(names: tuple[str, ...]) -> tuple[str, ...]:
    """What `names` come to, each once. ex) ("NHWC", "contiguous") for ("NHWC", "NCHW", "NCL")."""
    return tuple(dict.fromkeys(CONTIGUOUS if name in FIRST else name for name in names))


def of_rank(names: tuple[str, ...], rank: int | None) -> tuple[str, ...]:
    """The orders that are taken of a tensor of `rank`, the first is made; empty: any. None: a rank that has no LAST."""
    return tuple(order for order in orders(names) if order == CONTIGUOUS or LAST[order] == rank)


def own_ranks(names: tuple[str, ...]) -> tuple[int, ...]:
    """The ranks that take other orders than tensors of any other rank."""
    return tuple(rank for rank in LAST.values() if of_rank(names, rank) != of_rank(names, None))
