"""`diopigen fmt` on schema files with comments strewn in: the same meaning, every comment, and a fixed point."""

import re
from pathlib import Path

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from diopigen.diagnostics import Diagnostics
from diopigen.source.format.op_style import canonical
from diopigen.source.yaml.nodes import parse_yaml, plain

OPS = Path(__file__).resolve().parents[2] / "schemas" / "ops"
ENTRIES = tuple(
    entry
    for path in sorted(OPS.glob("*.yaml"))
    for entry in re.split(r"\n\n(?=[a-z#])", path.read_text(encoding="utf-8").strip())
)

# Where in the file, relative to its length; what happens there; how deep a comment stands.
EDITS = st.lists(
    st.tuples(
        st.floats(0, 0.999),
        st.sampled_from(["above", "side", "blank", "break", "break and comment", "swap", "spaces"]),
        st.sampled_from([0, 2, 3, 4, 6, 9]),
    ),
    min_size=1,
    max_size=8,
)


def edited(text: str, edits: list[tuple[float, str, int]]) -> str:
    """`text` as a careless author might leave it, with a comment `mark<n>` for some of the edits."""
    lines = text.split("\n")
    for number, (place, kind, depth) in enumerate(edits):
        at = int(place * len(lines))
        comma = lines[at].find(", ")
        match kind:
            case "above":
                lines.insert(at, f"{' ' * depth}# mark{number}.")
            case "side":
                lines[at] += f"  # mark{number}."
            case "blank":
                lines.insert(at, "")
            case "break" | "break and comment" if comma > 0:
                mark = f"  # mark{number}." if kind == "break and comment" else ""
                lines[at : at + 1] = [lines[at][: comma + 1] + mark, " " * (depth + 6) + lines[at][comma + 2 :]]
            case "swap" if at + 1 < len(lines):
                lines[at], lines[at + 1] = lines[at + 1], lines[at]
            case "spaces":
                lines[at] = lines[at].replace(": ", ":   ").replace("{", "{ ").replace(", ", " , ")
    return "\n".join(lines) + "\n"


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=3, unique=True), EDITS, st.sampled_from(["\n", "\r\n"]))
def test_nothing_is_lost(entries: list[str], edits: list[tuple[float, str, int]], end: str) -> None:
    text = edited("\n\n".join(entries), edits)
    found = Diagnostics()
    before = parse_yaml(text, "before.yaml", found)
    assume(before is not None and not found.failed and "\n" not in str(plain(before)).replace("\\n", "\n"))
    assert before is not None
    after = canonical(text.replace("\n", end))
    again = parse_yaml(after, "after.yaml", found)
    assert again is not None and not found.failed
    assert repr_sorted(plain(again)) == repr_sorted(plain(before))
    for number in range(len(edits)):
        assert after.count(f"mark{number}.") == text.count(f"mark{number}.")
    assert canonical(after) == after
    assert "\r" not in after and not re.search(r"[ \t]$", after, re.MULTILINE)


def repr_sorted(value: object) -> str:
    """A text that is equal for equal values, NaN and the order of keys included."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {repr_sorted(value[key])}" for key in sorted(value)) + "}"
    return f"[{', '.join(map(repr_sorted, value))}]" if isinstance(value, list) else repr(value)
