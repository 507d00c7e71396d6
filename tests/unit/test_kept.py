"""What is kept between runs comes back as it was, and is forgotten when no run asks for it."""

import math
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics, Span
from diopigen.kept import Damaged, KeptTexts
from diopigen.trees import Trees, remembered
from tests.unit import test_kept as this_module

NOWHERE = Span(path="a.yaml", line=1, column=1)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    left: object
    right: object


def test_texts_come_back_as_they_were(tmp_path: Path) -> None:
    texts = {"a": "two\nlines\r\n", "b": "", "c": "ü\u2028é", "d": '{"json": "\\n"}'}
    kept = KeptTexts(tmp_path / "texts")
    for key, text in texts.items():
        kept.keep(key, text)
    kept.write()
    again = KeptTexts(tmp_path / "texts")
    assert {key: again.found(key) for key in texts} == texts and again.found("e") is None


def test_a_text_that_runs_leave_unused_is_forgotten(tmp_path: Path) -> None:
    kept = KeptTexts(tmp_path / "texts")
    kept.keep("used", "1")
    kept.keep("unused", "2")
    kept.write()
    for number in range(4):
        kept = KeptTexts(tmp_path / "texts")
        assert kept.found("used") == "1"
        kept.keep(f"new{number}", "")
        kept.write()
    again = KeptTexts(tmp_path / "texts")
    assert again.found("used") == "1" and again.found("unused") is None


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    kept = KeptTexts(tmp_path / "texts")
    kept.keep("a", "text")
    kept.write()
    content = (tmp_path / "texts").read_text(encoding="utf-8")
    (tmp_path / "texts").write_text(content.replace("text", "test"), encoding="utf-8")
    with pytest.raises(Damaged):
        KeptTexts(tmp_path / "texts")


@pytest.mark.parametrize(
    "value",
    [True, 1, 1.0, "1", None, -0.0, math.inf, "ü\n", (), (1, True, 1.0, (None,)), Colour.RED, Leaf(value=Colour.RED)],
)
def test_trees_come_back_as_they_were(value: object) -> None:
    tree = Pair(left=Leaf(value=value), right=(Leaf(value=value), Leaf(value="1")))
    trees = Trees((this_module,))
    line = trees.text(tree)
    assert "\n" not in line
    assert repr(trees.tree(line)) == repr(tree)


def test_what_has_findings_is_read_again(tmp_path: Path) -> None:
    kept, trees, read = KeptTexts(tmp_path / "texts"), Trees((this_module,)), []

    def of(diagnostics: Diagnostics) -> Leaf:
        read.append(diagnostics)
        if len(read) == 1:
            diagnostics.warning("odd", "this is odd", NOWHERE)
        return Leaf(value=len(read))

    findings = Diagnostics()
    found = [remembered(kept, "key", trees, findings, of).value for _ in range(4)]
    assert found == [1, 2, 2, 2] and [d.code for d in findings.found] == ["odd"]
