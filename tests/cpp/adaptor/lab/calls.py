"""Calls of the lab as values: storages, tensors, arguments, faults; and the text that the lab reads."""

from dataclasses import dataclass, field

from tests.cpp.adaptor.lab.contract import signatures, words
from tests.cpp.adaptor.lab.program import Rules


@dataclass(frozen=True, slots=True)
class Tensor:
    """A handle of the caller."""

    storage: int  # which of the call's storages
    dtype: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0  # in elements
    host: bool = False


@dataclass(frozen=True, slots=True)
class Allocation:
    """What the function allocates for a parameter; `dtype` None: nothing."""

    dtype: str | None
    sizes: tuple[int, ...] = (3,)
    strides: tuple[int, ...] = (1,)


@dataclass(frozen=True, slots=True)
class Call:
    """One call; parameters that are not named are absent."""

    function: str
    storages: tuple[bytes, ...]
    tensors: tuple[Tensor, ...]
    arguments: dict[str, int | None] = field(default_factory=dict)  # by parameter, which of the tensors
    lists: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    results: dict[str, Allocation] = field(default_factory=dict)
    fault: tuple[str, int, int] | None = None  # e.g. ("cast", 2, 1000): the second cast says 1000


def text(call: Call, rules: Rules) -> str:
    """What the lab reads; `rules` are those of the generated adaptor."""
    values = {word: value for value, word in enumerate(words())}
    lines = [f"call {call.function}"]
    for parameter in signatures()[call.function].parameters:
        rule = rules.get((call.function, parameter.name))
        if rule:
            lines.append(f"rule {parameter.name} {rule}")
    lines += [f"storage {storage.hex()}" for storage in call.storages]
    for t in call.tensors:
        place = f"{t.storage} {values[t.dtype]} {int(t.host)} {t.offset}"
        lines.append(f"tensor {place} {_counted(t.sizes)} {_counted(t.strides)}")
    lines += [f"arg {name} {_index(index)}" for name, index in call.arguments.items()]
    for name, indices in call.lists.items():
        lines.append(f"list {name} {len(indices)} {' '.join(map(_index, indices))}")
    for name, made in call.results.items():
        dtype = -1 if made.dtype is None else values[made.dtype]
        lines.append(f"result {name} {dtype} {_counted(made.sizes)} {_counted(made.strides)}")
    if call.fault is not None:
        lines.append("fail {} {} {}".format(*call.fault))
    return "\n".join([*lines, "go", ""])


def _counted(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, (len(numbers), *numbers)))


def _index(index: int | None) -> str:
    return "-1" if index is None else str(index)
