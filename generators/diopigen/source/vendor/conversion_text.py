"""Reads the small texts of convert_config.yaml: lists of casts, lists of layouts; each fault at its column."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.vendor import Cast, Casts, Layouts
from diopigen.source.yaml.nodes import Leaf, at_offset
from diopigen.text import listing, suggestion
from diopigen.vocabulary.dtype import DType, DTypes
from diopigen.vocabulary.layouts import ANY, FIRST, NAMES

NONE = "none"  # instead of casts: the function takes every dtype

_TOKEN = re.compile(r"->|[\u2192\u21d2]|[A-Za-z_][A-Za-z0-9_.]*|\S")
_ARROWS = ("->", "\u2192", "\u21d2")  # the others have had their diagnostic
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*\s*(#.*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What reading a text needs besides the text."""

    dtypes: DTypes
    lines: tuple[str, ...]  # of the file
    diagnostics: Diagnostics


class _Fault(Exception):
    """The text stops making sense; the diagnostic is already made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    text: str  # e.g. "float64"; empty at the end
    span: Span


class _Tokens:
    """The tokens of one leaf, with one to look ahead."""

    def __init__(self, leaf: Leaf, reading: Reading) -> None:
        self.reading = reading
        self.diagnostics = reading.diagnostics
        found = (
            _Token(
                text="->" if m.group() in _ARROWS else m.group(),
                span=_place(leaf, m.start(), len(m.group()), reading.lines),
            )
            for m in _TOKEN.finditer(leaf.text)
        )
        end = _Token(text="", span=_place(leaf, max(len(leaf.text.rstrip()) - 1, 0), 1, reading.lines))
        self._tokens = [*found, end]

    @property
    def next(self) -> _Token:
        return self._tokens[0]

    def take(self) -> _Token:
        return self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]

    def comma(self) -> bool:
        """Whether another item follows; takes the comma, which may also stand at the end."""
        if self.next.text != ",":
            return False
        self.take()
        return self.next.text != ""

    def expect(self, text: str, hint: str) -> _Token:
        if self.next.text != text:
            self.fault(f"expected '{text}'", hint)
        return self.take()

    def word(self, what: str, hint: str) -> _Token:
        if not self.next.text.replace(".", "_").isidentifier():
            self.fault(f"expected {what}", hint)
        return self.take()

    def fault(self, message: str, hint: str) -> None:
        seen = f"'{self.next.text}'" if self.next.text else "the end"
        self.diagnostics.error("conversion-syntax", f"{message} before {seen}", self.next.span, hint)
        raise _Fault

    def finish(self, hint: str) -> None:
        if self.next.text:
            self.diagnostics.error(
                "conversion-syntax", f"'{self.next.text}' is not expected here", self.next.span, hint
            )
            raise _Fault


_CAST_FORM = "write (float64)->float32, (int64)->int32"
_LAYOUT_FORM = "write NCHW or NCHW, weight(NHWC)"


def read_casts(leaf: Leaf, reading: Reading) -> tuple[Cast, ...]:
    """The casts of `(int64, int16)->int32, (float64)->float32`; none of `none`."""
    tokens = _Tokens(leaf, reading)
    try:
        casts = tuple(_cast_list(tokens))
        tokens.finish(_CAST_FORM)
    except _Fault:
        return ()
    return casts


def read_tensor_casts(leaf: Leaf, reading: Reading) -> tuple[Casts, ...]:
    """The casts of `input:(float64)->float32 out:(float64)->float32`, which YAML reads as one text."""
    tokens = _Tokens(leaf, reading)
    found: list[Casts] = []
    try:
        while tokens.next.text:
            name = tokens.word("an argument", "write bias:(float16)->float32")
            tokens.expect(":", "write bias:(float16)->float32")
            casts = tuple(_cast_list(tokens))
            found.append(Casts(param=name.text, casts=casts, span=name.span))
    except _Fault:
        pass
    return tuple(found)


def _cast_list(tokens: _Tokens) -> Iterator[Cast]:
    if tokens.next.text == NONE:
        tokens.take()
        tokens.comma()
        return
    yield from _cast(tokens)
    while tokens.comma() and tokens.next.text == "(":
        yield from _cast(tokens)


def _cast(tokens: _Tokens) -> Iterator[Cast]:
    tokens.expect("(", _CAST_FORM)
    sources = [_dtype(tokens)]
    while tokens.comma():
        sources.append(_dtype(tokens))
    tokens.expect(")", _CAST_FORM)
    tokens.expect("->", _CAST_FORM)
    target, _ = _dtype(tokens)
    for source, span in sources:
        if source is not None and target is not None:
            yield Cast(source=source, target=target, span=span)


def _dtype(tokens: _Tokens) -> tuple[DType | None, Span]:
    token, dtypes = tokens.word("a dtype", _CAST_FORM), tokens.reading.dtypes
    dtype = dtypes.worded(token.text)
    if dtype is None:
        words = [t.word for t in dtypes.types]
        meant = _meant(token.text, dtypes)
        hint = f"did you mean '{meant.word}'?" if meant is not None else suggestion(token.text, words)
        tokens.diagnostics.error(
            "unknown-dtype",
            f"there is no dtype '{token.text}'",
            token.span,
            hint or f"the dtypes are {', '.join(words)}",
        )
    return dtype, token.span


def _meant(text: str, dtypes: DTypes) -> DType | None:
    """The dtype spelled `text`, e.g. float64 for "torch.float64", "f64", "double" or "diopi_dtype_float64"."""
    bare = text.lower().rpartition(".")[2].removeprefix("diopi_dtype_").removesuffix("_t")
    return dtypes.meant(bare)


def read_layouts(leaf: Leaf, reading: Reading) -> tuple[Layouts, ...]:
    """The layouts of `NCHW, weight(NHWC)`: of all tensors first, then of single arguments."""
    tokens = _Tokens(leaf, reading)
    common: list[_Token] = []
    single: list[Layouts] = []
    try:
        while True:
            token = tokens.word("a layout", _LAYOUT_FORM)
            if tokens.next.text == "(":
                single.append(_layouts_of(token, tokens))
            else:
                common.append(token)
            if not tokens.comma():
                break
        tokens.finish(_LAYOUT_FORM)
    except _Fault:
        return ()
    if not common:
        return tuple(single)
    return (Layouts(param=None, names=_known_layouts(common, tokens.diagnostics), span=common[0].span), *single)


def read_names(leaf: Leaf, reading: Reading) -> tuple[tuple[str, Span], ...]:
    """The arguments of `input, mask`."""
    form = "write true, false, or arguments: input, mask"
    tokens = _Tokens(leaf, reading)
    names: list[tuple[str, Span]] = []
    try:
        while True:
            token = tokens.word("an argument", form)
            names.append((token.text, token.span))
            if not tokens.comma():
                break
        tokens.finish(form)
    except _Fault:
        return ()
    return tuple(names)


def _layouts_of(name: _Token, tokens: _Tokens) -> Layouts:
    tokens.take()
    words = [tokens.word("a layout", _LAYOUT_FORM)]
    while tokens.comma():
        words.append(tokens.word("a layout", _LAYOUT_FORM))
    tokens.expect(")", _LAYOUT_FORM)
    return Layouts(param=name.text, names=_known_layouts(words, tokens.diagnostics), span=name.span)


def _known_layouts(tokens: list[_Token], diagnostics: Diagnostics) -> tuple[str, ...]:
    """The names without ND, which asks for nothing, so that it may stand beside `NHWC` but not beside `NCHW`."""
    names: list[str] = []
    seen: dict[str, Span] = {}
    every = next((token for token in tokens if token.text in FIRST), None)
    for token in tokens:
        if token.text not in NAMES:
            hint = suggestion(token.text.upper(), NAMES) or f"the layouts are {listing(NAMES)}"
            diagnostics.error("unknown-layout", f"there is no layout '{token.text}'", token.span, hint)
        elif token.text in seen:
            first = (("the first is here", seen[token.text]),)
            message = f"'{token.text}' stands twice"
            diagnostics.warning("rule-never-applies", message, token.span, "remove one of them", first)
        elif token.text != ANY:
            names.append(token.text)
        elif every is not None:
            message = f"'{ANY}' has no effect next to '{every.text}', which applies to tensors of any rank"
            diagnostics.warning("rule-never-applies", message, token.span, "remove one of them")
        seen.setdefault(token.text, token.span)
    return tuple(names)


def _place(leaf: Leaf, offset: int, length: int, lines: tuple[str, ...]) -> Span:
    """Where the character `offset` of a leaf stands in the file, also if the leaf is folded over several lines."""
    if leaf.span.length >= len(leaf.text):
        return at_offset(leaf, offset, length)
    ahead = sum(not character.isspace() for character in leaf.text[:offset])
    number, column = leaf.span.line - 1, leaf.span.column - 1
    if leaf.quoted and _BLOCK_HEADER.fullmatch(lines[number][column:]):
        number, column = number + 1, 0
    elif leaf.quoted:
        column += 1
    while number < len(lines):
        for at in range(column, len(lines[number])):
            if lines[number][at].isspace():
                continue
            if ahead == 0:
                return replace(leaf.span, line=number + 1, column=at + 1, length=length)
            ahead -= 1
        number, column = number + 1, 0
    return leaf.span
