"""The text of a new op's entry: the least that runs, or after the model of another op, with prompts where to write."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from diopigen.source.format.op_style import entry_text
from diopigen.source.yaml.layout import Group, Layout, Text, Unit

# Prompts stand between angle brackets; lint reports each that is left.
DOC = "<what {name} computes, in one or two sentences; names of arguments in backquotes>"
MATH = "<the formula, in TeX>"

MINIMAL = """\
{name}:
  doc: {doc}
  math: {math}
  args:
    input: Tensor<T>
  out: Tensor<T> like input
  where: {{T: float}}
  variants: [out, inplace]
  kernel: input
{aten}  cases:
    - {{input: [1024]}}
    - {{input: [8, 5, 3]}}
    - {{input: []}}
    - {{input: [0, 5]}}
"""

# What one op of an old contract has against the rules; a new op keeps to them.
_DEVIATIONS = ("name", "names", "order", "c", "deprecated")

Known = Callable[[str], bool]  # whether torch has an operator or overload of that name


def minimal_entry(name: str, known: Known) -> str:
    """An elementwise op of one argument."""
    aten = f"  aten: {name}\n" if known(name) else ""
    return MINIMAL.format(name=name, doc=DOC.format(name=name), math=MATH, aten=aten)


def entry_like(model: Unit, name: str, known: Known, left_out: tuple[str, ...] = ()) -> str:
    """The entry `model` for an op called `name`: without its comments and deviations, its text replaced by prompts.

    Keys that are `left_out` are left out, too.

    ATen operators that are called after the model are called after `name`; `aten` is left out unless torch has all.
    """
    assert model.key is not None and isinstance(model.value, Group)
    entry = _without(model.value, left_out)
    units = tuple(_units(entry, model.key.value, name, known))
    return entry_text(replace(model, key=_plain(name), value=replace(model.value, units=units)))


def _units(entry: Group, model: str, name: str, known: Known) -> Iterator[Unit]:
    for unit in entry.units:
        key = unit.key.value if unit.key is not None else ""
        if key == "doc":
            yield replace(unit, value=_plain(DOC.format(name=name)))
        elif key == "math":
            yield replace(unit, value=_plain(MATH))
        elif key == "backward" and isinstance(unit.value, Group):
            yield replace(unit, value=_without(unit.value, (*_DEVIATIONS, "math")))
        elif key == "aten":
            renamed = _renamed(unit.value, model, name)
            if renamed is not None and all(known(text) for text in _operators(renamed)):
                yield replace(unit, value=renamed)
        elif key not in _DEVIATIONS:
            yield unit


def _without(group: Group, keys: tuple[str, ...]) -> Group:
    return replace(group, units=tuple(u for u in group.units if u.key is None or u.key.value not in keys))


def _renamed(aten: Layout, model: str, name: str) -> Layout | None:
    """`aten` with `model` in its operators replaced by `name`; None if one is not called after the model."""
    if isinstance(aten, Text):
        return _plain(aten.value.replace(model, name)) if model in aten.value else None
    units = []
    for unit in aten.units:
        key = unit.key.value if unit.key is not None else ""
        if key in ("function", "wrapper"):
            return None
        value = _renamed(unit.value, model, name) if key in ("", "forward", "backward") else unit.value
        if value is None:
            return None
        units.append(replace(unit, value=value))
    return replace(aten, units=tuple(units))


def _operators(aten: Layout) -> Iterator[str]:
    """Every operator that `aten` names."""
    if isinstance(aten, Text):
        yield aten.value
        return
    for unit in aten.units:
        if unit.key is None or unit.key.value in ("forward", "backward"):
            yield from _operators(unit.value)


def _plain(text: str) -> Text:
    return Text(source=text, value=text, style=None, begin=0, end=0)
