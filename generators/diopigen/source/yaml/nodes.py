"""Reads YAML into nodes that know where they stand; the only module that calls the YAML loader."""

import re
from dataclasses import dataclass
from errno import EINVAL
from pathlib import Path
from typing import Any

import yaml

from diopigen.diagnostics import Diagnostics, Span

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEEPEST = 50  # lists and mappings in each other
LONGEST = 200  # digits of a number; a float holds it

BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # what YAML takes for the end of a line

_INT = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INF = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NULLS = ("", "~", "null", "Null", "NULL")
_TRUES = ("true", "True", "TRUE")
_FALSES = ("false", "False", "FALSE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A scalar, read by the YAML 1.2 core rules unless quoted."""

    text: str  # e.g. "Tensor<T>"
    quoted: bool
    span: Span

    @property
    def value(self) -> bool | int | float | str | None:
        """The plain value: e.g. 1, 0.5, True, None, "no"."""
        return self.text if self.quoted else core_scalar(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    items: tuple["Node", ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key of a mapping and what it holds."""

    key: Leaf
    value: "Node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    entries: tuple[Entry, ...]
    span: Span

    def entry(self, key: str) -> Entry | None:
        return next((e for e in self.entries if e.key.text == key), None)

    def get(self, key: str) -> "Node | None":
        entry = self.entry(key)
        return None if entry is None else entry.value


Node = Leaf | Sequence | Mapping


def core_scalar(text: str) -> bool | int | float | str | None:
    """`text` as the YAML 1.2 core schema reads it: `no` is a string, `1e-3` a number."""
    if text in _NULLS:
        return None
    if text in _TRUES:
        return True
    if text in _FALSES:
        return False
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INF.fullmatch(text):
        return float("-inf") if text.startswith("-") else float("inf")
    return float("nan") if text in (".nan", ".NaN", ".NAN") else text


def plain(node: Node) -> object:
    """The node as nested dicts, lists and scalars, without places."""
    match node:
        case Leaf():
            return node.value
        case Sequence():
            return [plain(item) for item in node.items]
        case Mapping():
            return {entry.key.text: plain(entry.value) for entry in node.entries}


def read_yaml(path: Path, shown: str, diagnostics: Diagnostics, empty: bool = True) -> Node | None:
    """The root node of `path`, or None after a diagnostic; `shown` is the path that spans carry."""
    text = read_text(path, shown, diagnostics)
    return None if text is None else root_of(text, shown, diagnostics, empty)


def root_of(text: str, shown: str, diagnostics: Diagnostics, empty: bool = True) -> Node | None:
    """As read_yaml(). A file that has no value at all is an empty mapping, or an error unless it may be `empty`.

    Duplicate keys, anchors, aliases and tags are errors: a schema says each thing once and in plain sight.
    """
    node = parse_yaml(text, shown, diagnostics)
    if node is None or empty or node != Mapping(entries=(), span=Span(path=shown, line=1, column=1)):
        return node
    hint = "write '{}' if that is intended, or remove the file"
    diagnostics.error("empty-file", "this file is empty", node.span, hint)
    return None


def read_text(path: Path, shown: str, diagnostics: Diagnostics) -> str | None:
    """The text of `path` without a byte order mark, or None after a diagnostic."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise OSError(EINVAL, "it is not a regular file")
        return path.read_text(encoding="utf-8").removeprefix("\ufeff")
    except OSError as error:
        diagnostics.error("unreadable", f"cannot read this file: {error.strerror}", Span(path=shown, line=1, column=1))
        return None
    except UnicodeDecodeError as error:
        place = _behind(error.object[: error.start], shown)
        diagnostics.error("not-utf8", "this file is not valid UTF-8 text", place)
        return None


def _behind(before: bytes, shown: str) -> Span:
    """The place of the character that follows `before`, the first bytes of a file."""
    lines = before.decode("utf-8", "ignore").split("\n")
    return Span(path=shown, line=len(lines), column=len(lines[-1]) + 1)


def parse_yaml(text: str, shown: str, diagnostics: Diagnostics) -> Node | None:
    """The root node of `text`, or None after a diagnostic."""
    loader = _Loader(text)
    try:
        return _Builder(text, shown, diagnostics).root(loader)
    except _Refused:
        return None
    except yaml.MarkedYAMLError as error:
        problem = " ".join(str(error.problem or error.context or "invalid YAML").split())
        marks = (error.context_mark, error.problem_mark)  # the first shows the key without a colon, the open bracket
        mark = next((m for m in (marks if problem in _AT_CONTEXT else marks[::-1]) if m is not None), None)
        line, column = (1, 1) if mark is None else (mark.line + 1, mark.column + 1)
        hint = _cure(problem, text.split("\n"), line, column)
        diagnostics.error("invalid-yaml", problem, Span(path=shown, line=line, column=column), hint)
        return None
    except yaml.reader.ReaderError as error:
        message = f"the character U+{_code_point(error.character):04X} is not allowed in YAML"
        diagnostics.error("invalid-yaml", message, _behind(text.encode()[: error.position], shown))
        return None
    finally:
        loader.dispose()


_NO_COLON = "could not find expected ':'"
_OPEN = ("did not find expected ',' or '}'", "did not find expected ',' or ']'")
_AT_CONTEXT = (_NO_COLON, *_OPEN)
_NOT_HERE = "mapping values are not allowed in this context"


def _cure(problem: str, lines: list[str], line: int, column: int) -> str | None:
    """What mends the mistake that the YAML library found at a place."""
    if "\t" in "".join(lines[line - 1 : line])[:column]:
        return "write spaces instead of the tab"
    if problem == _NO_COLON:
        return "write ':' behind the key"
    if problem in _OPEN:
        return "close this bracket, and write a comma between what is in it"
    if problem == _NOT_HERE:
        missing = line > 1 and ":" not in lines[line - 2].partition("#")[0]
        return f"write ':' behind the key of line {line - 1}" if missing else "put quotes around text that has ': '"
    return None


def marked_nodes(text: str) -> yaml.Node | None:
    """The YAML library's own nodes of `text`, which parse_yaml has accepted; they know their styles and offsets."""
    loader = _Loader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def _code_point(character: object) -> int:
    """What the YAML library calls a character: a number, a text or bytes."""
    return character if isinstance(character, int) else ord(character[:1])  # type: ignore[index]


class _Refused(Exception):
    """The text has what no file of ours may have; it was reported."""


class _Builder:
    """Makes nodes of the YAML library's events; the library's own nodes would be made by recursion, however deep."""

    def __init__(self, text: str, shown: str, diagnostics: Diagnostics) -> None:
        self.text = text
        self.shown = shown
        self.diagnostics = diagnostics

    def root(self, loader: Any) -> Node:
        """The root of the only document. Raises _Refused after a diagnostic."""
        root: Node = Mapping(entries=(), span=Span(path=self.shown, line=1, column=1))
        documents = 0
        open_: list[tuple[Any, list[Node]]] = []
        while loader.check_event():
            event = loader.get_event()
            self._check(event)
            match event:
                case yaml.ScalarEvent():
                    node: Node = self._leaf(event)
                case yaml.CollectionStartEvent():
                    open_.append((event, []))
                    self._limit(event, len(open_))
                    continue
                case yaml.CollectionEndEvent():
                    node = self._collection(*open_.pop(), event)
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        message, hint = "a second document begins here", "remove this line: a file holds one document"
                        self.diagnostics.error("invalid-yaml", message, self._span(event, event), hint)
                        raise _Refused
                    continue
                case _:
                    continue
            if open_:
                open_[-1][1].append(node)
            else:
                root = node
        return root

    def _check(self, event: Any) -> None:
        """Refuses what YAML has and the schema language lacks."""
        if getattr(event, "anchor", None) is not None:
            message = "anchors and aliases are not part of the schema language"
            self.diagnostics.error("anchor", message, self._start(event), "write the value out")
            raise _Refused
        if (tag := getattr(event, "tag", None)) is not None:
            message = f"the tag '{tag}' is not part of the schema language"
            hint = "remove it, or put quotes around a string that begins with '!'"
            self.diagnostics.error("tag", message, self._start(event), hint)
            raise _Refused

    def _limit(self, event: Any, depth: int) -> None:
        if depth > DEEPEST:
            message = f"lists and mappings are nested more than {DEEPEST} deep"
            self.diagnostics.error("too-deep", message, self._start(event), "close a bracket, or use fewer levels")
            raise _Refused

    def _leaf(self, event: Any) -> Leaf:
        leaf = Leaf(text=event.value, quoted=bool(event.style), span=self._span(event, event))
        if len(leaf.text) > LONGEST and not leaf.quoted and _INT.fullmatch(leaf.text):
            self.diagnostics.error("out-of-range", f"this number has more than {LONGEST} digits", leaf.span)
            raise _Refused
        if "\t" in leaf.text:
            self._tab(event)
        return leaf

    def _tab(self, event: Any) -> None:
        """A tab in a text is nearly always `\\t` of a command of LaTeX, which something has read."""
        begin, end = event.start_mark.index, event.end_mark.index
        at = next((at for tab in ("\t", "\\t") if (at := self.text.find(tab, begin, end)) >= 0), begin)
        before = self.text[:at].split("\n")
        place = Span(path=self.shown, line=len(before), column=len(before[-1]) + 1)
        escaped = self.text[at] == "\\"
        hint = "'\\t' in double quotes is a tab; remove the quotes" if escaped else "write a space, or '\\t' for LaTeX"
        self.diagnostics.error("tab", "this text has a tab", place, hint)

    def _collection(self, start: Any, items: list[Node], end: Any) -> Node:
        span = self._span(start, end)
        if isinstance(start, yaml.SequenceStartEvent):
            return Sequence(items=tuple(items), span=span)
        return Mapping(entries=_entries(items[::2], items[1::2], self.diagnostics), span=span)

    def _start(self, event: Any) -> Span:
        return Span(path=self.shown, line=event.start_mark.line + 1, column=event.start_mark.column + 1)

    def _span(self, first: Any, last: Any) -> Span:
        start, end = first.start_mark, last.end_mark
        length = end.column - start.column if end.line == start.line else 1
        return Span(path=self.shown, line=start.line + 1, column=start.column + 1, length=max(1, length))


def _entries(keys: list[Node], values: list[Node], diagnostics: Diagnostics) -> tuple[Entry, ...]:
    first: dict[str, Span] = {}
    entries: list[Entry] = []
    for key, value in zip(keys, values, strict=True):
        if not isinstance(key, Leaf):
            diagnostics.error("invalid-key", "a key must be a plain string", key.span)
        elif key.text in first:
            diagnostics.error(
                "duplicate-key",
                f"'{key.text}' stands twice",
                key.span,
                "remove one of them",
                (("the first is here", first[key.text]),),
            )
        else:
            first[key.text] = key.span
            entries.append(Entry(key=key, value=value))
    return tuple(entries)


def span_at(node: Node, *path: str | int) -> Span:
    """The span of the key, item or leaf at `path`, or of the last part of it that there is."""
    span = node.span
    for part in path:
        if isinstance(node, Mapping) and isinstance(part, str):
            entry = node.entry(part)
            if entry is None:
                return span
            node, span = entry.value, entry.key.span
        elif isinstance(node, Sequence) and isinstance(part, int):
            node = node.items[part]
            span = node.span
    return node.span if isinstance(node, Leaf) else span


def span_of(path: Path, shown: str, *keys: str) -> Span:
    """The span of what a file that was read before has at `keys`."""
    node = read_yaml(path, shown, Diagnostics())
    return Span(path=shown, line=1, column=1) if node is None else span_at(node, *keys)


def at_offset(leaf: Leaf, offset: int, length: int = 1) -> Span:
    """The place of the character `offset` of a one-line leaf; the leaf's start where lines were folded."""
    if leaf.span.length < len(leaf.text):
        return leaf.span
    column = leaf.span.column + offset + (1 if leaf.quoted else 0)
    return Span(path=leaf.span.path, line=leaf.span.line, column=column, length=length)
