"""convert_config.yaml as docs/adaptor.md describes it, read by YAML's own loader and a few patterns."""

import itertools
import re
from dataclasses import dataclass
from typing import Any

import yaml

from tests.cpp.adaptor.lab.contract import Signature, signatures
from tests.cpp.adaptor.lab.oracle import Reading, Wanted

_RANKS = range(33)
_CHANNELS_LAST = {3: "NLC", 4: "NHWC", 5: "NDHWC"}
_CONTIGUOUS = ("NCL", "NCHW", "NCDHW")
PROPERTIES = {"dtype", "tensor_dtype", "layout", "contiguous", "supportComposite", "implementation"}
_CAST = re.compile(r"\(([^)]*)\)\s*->\s*(\w+)")
_TENSOR = re.compile(r"(\w+)\s*:\s*(none\b|(?:\s*,?\s*\([^)]*\)\s*->\s*\w+)+)")
_LAYOUT = re.compile(r"(\w+)\s*\(([^)]*)\)|(\w+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """What one entry of the file says."""

    casts: dict[str | None, dict[str, str]]  # by argument; None: of all
    layouts: dict[str | None, list[str]]  # by argument; None: of all
    contiguous: dict[str | None, bool]


def read(config: str) -> Reading:
    """What is asked for each tensor; only for a file without errors."""
    entries: dict[str, Entry] = {}
    for item in yaml.load(config, yaml.CSafeLoader) or []:
        first, *beside = item
        if "ops" in item:
            named = dict.fromkeys(item["ops"], item)
        elif beside and item[first] is None and set(beside) <= PROPERTIES:
            named = {first: item}
        else:
            named = item
        entries |= {name: _entry(body or {}) for name, body in named.items()}
    found: Reading = {}
    for signature in signatures().values():
        levels = [entries[name] for name in (signature.symbol, "common_config") if name in entries]
        for parameter in signature.parameters:
            found[signature.symbol, parameter.name] = _wanted(signature, parameter.name, levels)
    return found


def _wanted(signature: Signature, name: str, levels: list[Entry]) -> Wanted:
    casts = next((level.casts[key] for level in levels for key in (name, None) if key in level.casts), {})
    layouts = next((level.layouts[key] for level in levels for key in (name, None) if key in level.layouts), [])
    contiguous = (level.contiguous[key] for level in levels for key in (name, None) if key in level.contiguous)
    orders: dict[int, tuple[str, ...]] = {}
    for rank, layout in itertools.product(_RANKS, layouts):
        if layout in (*_CONTIGUOUS, _CHANNELS_LAST.get(rank)):
            order = "first" if layout in _CONTIGUOUS else "last"
            orders[rank] = tuple(dict.fromkeys((*orders.get(rank, ()), order)))
    taken = signature.parameter(name).dtypes
    return Wanted(
        casts=tuple((source, target) for source, target in casts.items() if source in taken),
        orders=tuple(sorted(orders.items())),
        contiguous=next(contiguous, False),
    )


def _entry(body: dict[str, Any]) -> Entry:
    return Entry(_casts(body), _layouts_of(body), _contiguous(body))


def _casts(body: dict[str, Any]) -> dict[str | None, dict[str, str]]:
    found: dict[str | None, dict[str, str]] = {}
    if body.get("dtype") is not None:
        found[None] = _pairs(_text(body["dtype"]))
    said = body.get("tensor_dtype")
    if isinstance(said, dict):
        found |= {name: _pairs(_text(casts)) for name, casts in said.items() if casts is not None}
    elif said is not None:
        found |= {name: _pairs(casts) for name, casts in _TENSOR.findall(_text(said))}
    return found


def _text(value: Any) -> str:
    """A property's text: one, or a list of them."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _pairs(text: str) -> dict[str, str]:
    return {s.strip(): target for sources, target in _CAST.findall(text) for s in sources.split(",")}


def _layouts_of(body: dict[str, Any]) -> dict[str | None, list[str]]:
    found: dict[str | None, list[str]] = {}
    for argument, layouts, layout in _LAYOUT.findall(_text(body.get("layout") or "")):
        if layout:
            found.setdefault(None, []).append(layout)
        else:
            found.setdefault(argument, [each.strip() for each in layouts.split(",")])
    return found


def _contiguous(body: dict[str, Any]) -> dict[str | None, bool]:
    said = body.get("contiguous")
    if said is None or isinstance(said, bool):
        return {} if said is None else {None: said}
    return dict.fromkeys(re.findall(r"\w+", _text(said)), True)
