"""YAML whose values know their line and column, for messages that point at them."""

from dataclasses import dataclass
from pathlib import Path

import yaml


class YamlError(Exception):
    """The text is no such YAML; the message begins with file:line:column."""


@dataclass(frozen=True, slots=True)
class YamlPlace:
    """A place in a file, both numbers from 1."""

    path: Path
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Word:
    """A scalar, as text."""

    text: str
    place: YamlPlace


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping of words to words."""

    entries: tuple[tuple[Word, Word], ...]
    place: YamlPlace


def records(path: Path) -> tuple[Record, ...]:
    """The list of records in a file; an empty file is an empty list. Raises YamlError, and OSError."""
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = YamlPlace(path, 1, 1) if mark is None else YamlPlace(path, mark.line + 1, mark.column + 1)
        raise YamlError(f"{place}: {error.problem or 'no YAML'}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise YamlError(f"{YamlPlace(path, 1, 1)}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise YamlError(f"{YamlPlace(path, 1, 1)}: lists and mappings are nested too deep") from None
    if root is None:
        return ()
    if not isinstance(root, yaml.SequenceNode):
        raise YamlError(f"{_place(path, root)}: a list is expected here, e.g. '- id: add/f32/0'")
    return tuple(_record(path, node) for node in root.value)


def _record(path: Path, node: yaml.Node) -> Record:
    if not isinstance(node, yaml.MappingNode):
        raise YamlError(f"{_place(path, node)}: an entry has keys, e.g. 'id: add/f32/0'")
    entries: list[tuple[Word, Word]] = []
    for key, value in node.value:
        for part in (key, value):
            if not isinstance(part, yaml.ScalarNode):
                raise YamlError(f"{_place(path, part)}: a single value is expected here")
        if any(key.value == other.text for other, _ in entries):
            raise YamlError(f"{_place(path, key)}: '{key.value}' stands twice in this entry")
        entries.append((Word(key.value, _place(path, key)), Word(value.value, _place(path, value))))
    return Record(tuple(entries), _place(path, node))


def _place(path: Path, node: yaml.Node) -> YamlPlace:
    return YamlPlace(path, node.start_mark.line + 1, node.start_mark.column + 1)
