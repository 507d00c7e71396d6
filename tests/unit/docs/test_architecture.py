"""docs/architecture.md names rooms that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROOMS = (
    "schemas",
    "generators",
    "templates",
    "generated",
    "runtime_cpp",
    "vendors",
    "conformance",
    "python",
    "docs",
    "tests",
)
EXAMPLES = {"<topic>": "activation", "<v>": "droplet", "<vendor>": "droplet", "<t>": "header", "<family>": "pooling"}
WRITTEN = (
    "generated/<",
    "generated/torch",
    "commands/<name>",
    "constraints/torch-<",
    "schemas/aten/<",
    "targets/<name>",
    "templates/<name>",
)  # by a build, or yet to be


def paths() -> list[str]:
    """The paths that the page names, with an example for each placeholder."""
    quoted = [text for text in re.findall(r"`([^`\n]+)`", PAGE) if text.partition("/")[0] in ROOMS and " " not in text]
    kept = [text for text in quoted if not any(part in text for part in WRITTEN)]
    for name, example in EXAMPLES.items():
        kept = [text.replace(name, example) for text in kept]
    return sorted(dict.fromkeys(kept))


@pytest.mark.parametrize("path", paths())
def test_a_room_exists(path: str) -> None:
    assert any(ROOT.glob(path)), path


def test_a_page_without_rooms_would_be_seen() -> None:
    assert len(paths()) > 30
