"""Mutants as text: how they are read, where they stand, and how all of a source become one library."""

from dataclasses import replace
from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics, Span
from tools.mutants.mutant import FOLDER, KINDS, Mutant, read_mutants
from tools.mutants.report import Report, shown
from tools.mutants.schemata import Misplaced, place, planted, woven
from tools.mutants.score import Score

ROOT = Path(__file__).resolve().parents[2]

PLAIN = Mutant(
    name="softmax/wrong-sign",
    kind="wrong sign",
    source="softmax.cpp",
    before="a + b",
    after="a - b",
    functions=("diopiSoftmax",),
    span=Span(path="softmax.yaml", line=4, column=5),
)
N = PLAIN.number


def mutant(before: str, after: str, name: str = PLAIN.name) -> Mutant:
    return replace(PLAIN, name=name, before=before, after=after)


def read(tmp_path: Path, text: str) -> tuple[tuple[Mutant, ...], list[str]]:
    """The mutants of one file, and what is wrong with it."""
    (tmp_path / "softmax.yaml").write_text(text, encoding="utf-8")
    diagnostics = Diagnostics()
    found = read_mutants(tmp_path, tmp_path, diagnostics)
    return found, [f"{d.span}: {d.message}" for d in diagnostics.found]


HEAD = "source: softmax.cpp\nfunctions: [diopiSoftmax, diopiLog*]\nmutants:\n"


def test_a_file_is_read(tmp_path: Path) -> None:
    first = "  - kind: wrong sign\n    before: a + b\n    after: a - b\n"
    second = "  - kind: wrong sign\n    before: 'f(a);'\n    after: ''\n    functions: diopiExp\n    alone: true\n"
    (one, two), wrong = read(tmp_path, HEAD + first + second + "    equivalent: f does nothing\n")
    assert wrong == []
    assert (one.name, one.functions, one.alone, one.equivalent) == (
        PLAIN.name,
        ("diopiSoftmax", "diopiLog*"),
        False,
        "",
    )
    assert (two.name, two.functions, two.alone) == ("softmax/wrong-sign-2", ("diopiExp",), True)
    assert (two.before, two.after, two.equivalent) == ("f(a);", "", "f does nothing")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source: a.cpp\n", "softmax.yaml:1:1: a file of mutants has 'source', 'functions' and the list 'mutants'"),
        (
            HEAD + "  - {kind: typo, before: a, after: b}\n",
            f"softmax.yaml:4:5: there is no kind 'typo': one of {', '.join(KINDS)}",
        ),
        (
            HEAD + "  - {kind: wrong sign, befor: a, before: b, after: c}\n",
            "softmax.yaml:4:24: there is no key 'befor': one of kind, before, after, functions, alone, equivalent",
        ),
        (HEAD + "  - {kind: wrong sign, after: b}\n", "softmax.yaml:4:5: 'before' is missing or empty"),
        (
            HEAD + "  - {kind: wrong sign, before: b, after: c, equivalent: ''}\n",
            "softmax.yaml:4:5: 'equivalent' is missing or empty",
        ),
        (HEAD + "  - wrong\n", "softmax.yaml:4:5: expected keys and values"),
    ],
)
def test_mistakes_are_told_at_their_place(tmp_path: Path, text: str, message: str) -> None:
    assert read(tmp_path, text)[1] == [message]


def test_an_expression_becomes_a_choice() -> None:
    assert woven((mutant("a + b", "a - b"),), "x = a  +\n b;") == f"x = (diopi_planted == {N} ? (a - b) : (a  +\n b));"


def test_a_statement_becomes_a_choice() -> None:
    found = woven((mutant("f(a);", ""),), "if (x) f(a);")
    assert found == f"if (x) if (diopi_planted == {N}) {{  }} else {{ f(a); }}"


def test_mutants_of_one_place_and_of_a_part_of_it_share_a_choice() -> None:
    other, part = mutant("f(a + b)", "g(a + b)", "s/1"), mutant("a + b", "a", "s/2")
    found = woven((part, other), "x = f(a + b);")
    assert found == (
        f"x = (diopi_planted == {other.number} ? (g(a + b)) : "
        f"((diopi_planted == {part.number} ? (f(a)) : (f(a + b)))));"
    )


def test_one_fault_alone() -> None:
    assert planted(mutant("a + b", "b"), "x = a + b;") == "x = b;"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a - b", "softmax.yaml:4:5: 'a + b' is gone from softmax.cpp; plant the fault anew"),
        (
            "a + b; a + b",
            "softmax.yaml:4:5: 'a + b' is in softmax.cpp 2 times; take more of the text around it",
        ),
    ],
)
def test_a_mutant_stands_in_one_place(text: str, message: str) -> None:
    with pytest.raises(Misplaced) as raised:
        place(PLAIN, text)
    assert str(raised.value) == message


def test_a_mutant_stands_in_its_place_however_the_source_is_folded() -> None:
    text = "x = f(\n    a,b) && (const\n int)\nc;"
    assert place(mutant("f(a, b) && (const int) c", ""), text) == (4, len(text) - 1)
    with pytest.raises(Misplaced):
        place(mutant("const int", ""), "constint")


@pytest.mark.parametrize(("before", "after"), [("a, b", "b, a"), ("f(a", "g(a"), ("f(a);", "f(a"), ("a", "f(a))")])
def test_half_an_expression_is_refused(before: str, after: str) -> None:
    with pytest.raises(Misplaced, match=r"is no whole expression or statement; take all of it, or plant it 'alone'$"):
        woven((mutant(before, after),), f"x = {before};" if not before.endswith(";") else before)


@pytest.mark.parametrize("text", ["f(a, b)", "a >> 13", "Types<int, long>{}", "a->b", 'f("(")', "a < b"])
def test_whole_expressions_are_taken(text: str) -> None:
    assert "diopi_planted" in woven((mutant(text, text),), f"x = {text};")


def test_overlaps_are_refused() -> None:
    with pytest.raises(Misplaced) as raised:
        woven((mutant("a + b", "0", "s/1"), mutant("b + c", "0", "s/2")), "a + b + c")
    assert str(raised.value) == "softmax.yaml:4:5: overlaps with 's/1'; make one hold the other"


def test_every_mutant_of_the_project_stands_in_its_source() -> None:
    diagnostics = Diagnostics()
    found = read_mutants(FOLDER, ROOT, diagnostics)
    assert diagnostics.found == []
    assert len(found) - sum(bool(m.equivalent) for m in found) >= 200
    assert {m.kind for m in found} == set(KINDS)
    texts = {m.source: ROOT / m.source for m in found}
    there = {source: path.read_text(encoding="utf-8") for source, path in texts.items() if path.exists()}
    assert {source for source in texts if source not in there and not source.startswith("generated/")} == set()
    for source, text in there.items():
        woven(tuple(m for m in found if m.source == source and not m.alone), text)
        for m in found:
            if m.source == source and m.alone:
                planted(m, text)


def report(*scores: Score) -> Report:
    return Report(scores=scores, seconds=1.0)


DEAD = Score(mutant=PLAIN, asked=3, by="softmax/f32/0", verdict="fail", message="out is 1, expected 2")
ALIVE = Score(mutant=mutant("a", "b", "softmax/wrong-sign-2"), asked=9)


def test_a_survivor_fails_the_run() -> None:
    assert (report(DEAD).exit_code, report(DEAD, ALIVE).exit_code) == (0, 1)
    assert shown(report(DEAD, ALIVE)).splitlines() == [
        "kind        killed",
        "wrong sign    1 of   2",
        "",
        "file     killed",
        "softmax    1 of   2",
        "",
        "survived 9 cases: softmax/wrong-sign-2 (softmax.yaml:4:5)",
        "  'a' -> 'b'",
        "1 of 2 mutants die (50.0%, wanted 99%); 0 are equivalent; 1 s",
    ]


def test_one_survivor_of_two_hundred_does_not() -> None:
    assert report(*([DEAD] * 199), ALIVE).exit_code == 0
    assert report(*([DEAD] * 97), ALIVE).exit_code == 1


def test_an_equivalent_mutant_does_not_count_and_must_not_die() -> None:
    harmless = replace(ALIVE, mutant=replace(ALIVE.mutant, equivalent="a is b"))
    assert report(DEAD, harmless).exit_code == 0
    contradicted = report(DEAD, replace(harmless, by="softmax/f32/1", message="out is 3"))
    assert contradicted.exit_code == 1
    assert (
        "softmax.yaml:4:5: 'softmax/wrong-sign-2' is listed as equivalent, but softmax/f32/1 fails: out is 3"
        in shown(contradicted)
    )
