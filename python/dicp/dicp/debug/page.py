"""A program drawn: a page for browsers, one file that needs no network.

Time goes from left to right, one column for each instruction; below it the arena, in which each value is a box from the
first instruction that touches it to the last.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diopigen.page import kit

_COLUMN, _HEIGHT, _LEFT, _TOP = 14, 320, 8, 60
_SLUGS = {"kernel": "pass", "call": "portable", "island": "known"}  # the color of each kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """An instruction, or a value in the arena; in units of the drawing."""

    slug: str
    x: int
    y: float
    width: int
    height: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    slug: str
    title: str
    nodes: str
    reads: str
    writes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageView:
    title: str
    figures: tuple[tuple[str, ...], ...]  # name, value, color
    width: int
    height: int
    boxes: tuple[Box, ...]
    symbolic: bool  # whether the arena has no size that is known
    rows: tuple[Row, ...]
    explanation: str
    site: str  # the address of the documentation; may be empty


def page(title: str, program: dict[str, Any], explanation: str, site: str = "") -> str:
    """HTML of a program as document() gives it, which links `site`."""
    instructions = program["instructions"]
    view = PageView(
        title=title,
        figures=_figures(program),
        width=_LEFT * 2 + _COLUMN * max(1, len(instructions)),
        height=_TOP + _HEIGHT + 8,
        boxes=(*map(_instruction, range(len(instructions)), instructions), *_values(program)),
        symbolic=not isinstance(program["arena_bytes"], int),
        rows=tuple(map(_row, instructions)),
        explanation=explanation,
        site=site,
    )
    return kit.environment(Path(__file__).parent / "page_files").get_template("program.html.j2").render(view=view)


def _figures(program: dict[str, Any]) -> tuple[tuple[str, ...], ...]:
    kinds = [instruction["kind"] for instruction in program["instructions"]]
    return (
        ("launches", f"{len(kinds)} of {program['launches_unfused']} unfused"),
        *((f"{kind}s", str(kinds.count(kind)), slug) for kind, slug in _SLUGS.items()),
        ("bytes in the arena", f"{program['arena_bytes']} of {program['unplanned_bytes']}"),
    )


def _instruction(index: int, instruction: dict[str, Any]) -> Box:
    title = f"{index}: {_title(instruction)}: {', '.join(instruction['nodes'])}"
    x, slug = _LEFT + index * _COLUMN, _SLUGS[instruction["kind"]]
    return Box(slug=slug, x=x, y=8, width=_COLUMN - 2, height=36, title=title)


def _values(program: dict[str, Any]) -> Iterator[Box]:
    arena = program["arena_bytes"]
    for row in program["memory"]:
        placed = row["kind"] == "arena" and isinstance(row["offset"], int) and isinstance(row["bytes"], int)
        if not placed or not isinstance(arena, int) or not arena:
            continue
        yield Box(
            slug="value",
            x=_LEFT + row["first"] * _COLUMN,
            y=round(_TOP + row["offset"] * _HEIGHT / arena, 1),
            width=(row["last"] - row["first"] + 1) * _COLUMN - 2,
            height=round(max(1.0, row["bytes"] * _HEIGHT / arena), 1),
            title=f"{row['bytes']} bytes at {row['offset']}, instructions {row['first']} to {row['last']}",
        )


def _row(instruction: dict[str, Any]) -> Row:
    return Row(
        slug=_SLUGS[instruction["kind"]],
        title=_title(instruction),
        nodes=", ".join(instruction["nodes"]),
        reads=_views(instruction["reads"]),
        writes=_views(instruction["writes"]),
    )


def _title(instruction: dict[str, Any]) -> str:
    match instruction["kind"]:
        case "kernel":
            return f"kernel over {tuple(instruction['sizes'])}"
        case "call":
            return str(instruction["function"])
        case _:
            return f"{instruction['operator']} ({instruction['why']})"


def _views(views: list[dict[str, Any]]) -> str:
    return "; ".join(f"{view['dtype']}{view['sizes']} in {view['memory']}" for view in views)
