"""A program drawn: a page for browsers, one file that needs no network.

Time goes from left to right, one column for each instruction; below it the arena, in which each value is a box from the
first instruction that touches it to the last.
"""

from html import escape
from typing import Any

_COLUMN, _HEIGHT, _LEFT, _TOP = 14, 320, 8, 60
_COLORS = {"kernel": "#2a7f62", "call": "#30638e", "island": "#b3541e"}
_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px/1.5 system-ui, sans-serif; margin: 2rem; color: #1c2321; background: #fff }}
svg {{ display: block }} .wide {{ overflow-x: auto; border: 1px solid #d5dbd9 }}
table {{ border-collapse: collapse; margin-top: 1.5rem }}
td, th {{ padding: .15rem .6rem; text-align: left; border-bottom: 1px solid #e4e9e7; vertical-align: top }}
td:first-child {{ text-align: right; color: #66706d }} code {{ font-size: 12px }}
.kernel {{ color: #2a7f62 }} .call {{ color: #30638e }} .island {{ color: #b3541e }}
@media (prefers-color-scheme: dark) {{ body {{ background: #161b1a; color: #e4e9e7 }} }}
</style></head><body>
<h1>{title}</h1>
<p>{summary}</p>
"""


def page(title: str, program: dict[str, Any], explanation: str) -> str:
    """HTML of a program as document() gives it."""
    count = len(program["instructions"])
    kinds = [instruction["kind"] for instruction in program["instructions"]]
    summary = (
        f"{count} launches of {program['launches_unfused']} unfused: "
        + ", ".join(f"{kinds.count(kind)} {kind}s" for kind in _COLORS)
        + f"; arena {program['arena_bytes']} of {program['unplanned_bytes']} bytes."
    )
    parts = [_HEAD.format(title=escape(title), summary=escape(summary)), _drawing(program), _table(program)]
    parts.append(f"<h2>Explanation</h2><pre>{escape(explanation)}</pre></body></html>\n")
    return "".join(parts)


def _drawing(program: dict[str, Any]) -> str:
    instructions = program["instructions"]
    width = _LEFT * 2 + _COLUMN * max(1, len(instructions))
    shapes = []
    for index, instruction in enumerate(instructions):
        x = _LEFT + index * _COLUMN
        name = escape(f"{index}: {_title(instruction)}: {', '.join(instruction['nodes'])}")
        color = _COLORS[instruction["kind"]]
        shapes.append(
            f'<rect x="{x}" y="8" width="{_COLUMN - 2}" height="36" fill="{color}"><title>{name}</title></rect>'
        )
    arena = program["arena_bytes"]
    for row in program["memory"]:
        placed = row["kind"] == "arena" and isinstance(row["offset"], int) and isinstance(row["bytes"], int)
        if not placed or not isinstance(arena, int) or not arena:
            continue
        x = _LEFT + row["first"] * _COLUMN
        wide = (row["last"] - row["first"] + 1) * _COLUMN - 2
        y, high = _TOP + row["offset"] * _HEIGHT / arena, max(1.0, row["bytes"] * _HEIGHT / arena)
        text = escape(f"{row['bytes']} bytes at {row['offset']}, instructions {row['first']} to {row['last']}")
        shapes.append(
            f'<rect x="{x}" y="{y:.1f}" width="{wide}" height="{high:.1f}" fill="#8fb8a8" fill-opacity=".6" '
            f'stroke="#2a7f62" stroke-width=".5"><title>{text}</title></rect>'
        )
    if not isinstance(arena, int):
        note = "the places of values whose sizes are symbols are in program.json"
        shapes.append(f'<text x="{_LEFT}" y="{_TOP + 14}" fill="currentColor">{note}</text>')
    high = _TOP + _HEIGHT + 8
    return f'<div class="wide"><svg width="{width}" height="{high}">{"".join(shapes)}</svg></div>\n'


def _table(program: dict[str, Any]) -> str:
    rows = [
        f'<tr><td>{index}</td><td class="{i["kind"]}">{escape(_title(i))}</td>'
        f"<td><code>{escape(', '.join(i['nodes']))}</code></td>"
        f"<td><code>{escape(_views(i['reads']))}</code></td><td><code>{escape(_views(i['writes']))}</code></td></tr>"
        for index, i in enumerate(program["instructions"])
    ]
    head = "<tr><th></th><th>instruction</th><th>nodes of the graph</th><th>reads</th><th>writes</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>\n"


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
