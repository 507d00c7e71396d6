"""Scalars follow the YAML 1.2 core rules; what the language does not have is an error with its place."""

import pytest

from diopigen.diagnostics import Diagnostics
from diopigen.source.yaml.nodes import Leaf, Mapping, core_scalar, parse_yaml, plain


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("1e-3", 1e-3),
        ("1_000", "1_000"),
        ("0o17", 15),
        ("0x1F", 31),
        ("017", 17),
        ("true", True),
        ("~", None),
        ("", None),
        ("-.inf", float("-inf")),
        ("12:30", "12:30"),
        ("2026-11-21", "2026-11-21"),
    ],
)
def test_core_scalars(text: str, value: object) -> None:
    assert core_scalar(text) == value


def test_quoted_scalars_are_text() -> None:
    node = parse_yaml('a: "1"\nb: 1\n', "a.yaml", Diagnostics())
    assert node is not None
    assert plain(node) == {"a": "1", "b": 1}


def test_spans_count_from_one() -> None:
    node = parse_yaml("first: x\nsecond:\n  inner: Tensor<T>\n", "a.yaml", Diagnostics())
    assert isinstance(node, Mapping)
    second = node.get("second")
    assert isinstance(second, Mapping)
    inner = second.get("inner")
    assert isinstance(inner, Leaf)
    assert (inner.span.line, inner.span.column, inner.span.length) == (3, 10, 9)


def _first(text: str) -> str:
    diagnostics = Diagnostics()
    parse_yaml(text, "a.yaml", diagnostics)
    finding = diagnostics.found[0]
    return f"{finding.span}: {finding.code}: {finding.message}"


def test_what_the_language_lacks_is_an_error() -> None:
    assert _first("a: 1\na: 2\n") == "a.yaml:2:1: duplicate-key: 'a' stands twice"
    assert _first("a: &x 1\nb: *x\n") == "a.yaml:1:4: anchor: anchors and aliases are not part of the schema language"
    assert _first("a: !x\n") == "a.yaml:1:4: tag: the tag '!x' is not part of the schema language"
    assert _first("a: !!str 1\n") == (
        "a.yaml:1:4: tag: the tag 'tag:yaml.org,2002:str' is not part of the schema language"
    )
    assert _first("? [1, 2]\n: 3\n") == "a.yaml:1:3: invalid-key: a key must be a plain string"
    assert _first("a: " + "[" * 50 + "]" * 50) == (
        "a.yaml:1:53: too-deep: lists and mappings are nested more than 50 deep"
    )
    assert _first(f"a: -{'9' * 200}\n") == "a.yaml:1:4: out-of-range: this number has more than 200 digits"
    assert _first("a: 1\n---\nb: 1\n") == "a.yaml:2:1: invalid-yaml: a second document begins here"
    assert _first("a: [1, 2\n").startswith("a.yaml:1:4: invalid-yaml:")
    assert _first("a: \x00\n").startswith("a.yaml:1:4: invalid-yaml: the character U+0000")
    assert _first("é: éé\nab: é\x01\n").startswith("a.yaml:2:6: invalid-yaml: the character U+0001")


def test_exclamation_marks_in_texts_are_no_tags() -> None:
    diagnostics = Diagnostics()
    node = parse_yaml("a: 1 != 2\nb: '!x'\nc: it works!\n", "a.yaml", diagnostics)
    assert diagnostics.found == [] and node is not None
    assert plain(node) == {"a": "1 != 2", "b": "!x", "c": "it works!"}
