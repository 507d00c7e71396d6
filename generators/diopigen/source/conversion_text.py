"""Reads the small texts of convert_config.yaml: lists of casts, lists of layouts; each fault at its column."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.dtype import DType, DTypes
from diopigen.model.vendor import Cast, Layouts, TensorCasts
from diopigen.source.grammar import at_offset
from diopigen.source.yaml_nodes import Leaf
from diopigen.text import listing, suggestion

LAYOUTS = ("NCHW", "NHWC", "NCL", "NLC", "NCDHW", "NDHWC", "ND")

_TOKEN = re.compile(r"->|[A-Za-z_][A-Za-z0-9_]*|\S")


class _Fault(Exception):
    """The text stops making sense; the diagnostic is already made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    text: str  # ex) "float64"; empty at the end
    span: Span


class _Tokens:
    """The tokens of one leaf, with one to look ahead."""

    def __init__(self, leaf: Leaf, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        found = (
            _Token(text=m.group(), span=at_offset(leaf, m.start(), len(m.group()))) for m in _TOKEN.finditer(leaf.text)
        )
        end = _Token(text="", span=at_offset(leaf, max(len(leaf.text) - 1, 0)))
        self._tokens = [*found, end]

    @property
    def next(self) -> _Token:
        return self._tokens[0]

    @property
    def after_next(self) -> _Token:
        return self._tokens[min(1, len(self._tokens) - 1)]

    def take(self) -> _Token:
        return self._tokens.pop(0) if len(self._tokens) > 1 else self._tokens[0]

    def expect(self, text: str, hint: str) -> _Token:
        if self.next.text != text:
            self.fault(f"expected '{text}'", hint)
        return self.take()

    def word(self, what: str, hint: str) -> _Token:
        if not self.next.text.isidentifier():
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


def read_casts(leaf: Leaf, dtypes: DTypes, diagnostics: Diagnostics) -> tuple[Cast, ...]:
    """The casts of `(int64, int16)->int32, (float64)->float32`."""
    tokens = _Tokens(leaf, diagnostics)
    try:
        casts = tuple(_cast_list(tokens, dtypes))
        tokens.finish(_CAST_FORM)
    except _Fault:
        return ()
    return casts


def read_tensor_casts(leaf: Leaf, dtypes: DTypes, diagnostics: Diagnostics) -> tuple[TensorCasts, ...]:
    """The casts of `input:(float64)->float32 out:(float64)->float32`, which YAML reads as one text."""
    tokens = _Tokens(leaf, diagnostics)
    found: list[TensorCasts] = []
    try:
        while tokens.next.text:
            name = tokens.word("an argument", "write bias:(float16)->float32")
            tokens.expect(":", "write bias:(float16)->float32")
            casts = tuple(_cast_list(tokens, dtypes))
            found.append(TensorCasts(param=name.text, casts=casts, span=name.span))
            if tokens.next.text == ",":
                tokens.take()
    except _Fault:
        pass
    return tuple(found)


def _cast_list(tokens: _Tokens, dtypes: DTypes) -> Iterator[Cast]:
    yield from _cast(tokens, dtypes)
    while tokens.next.text == "," and tokens.after_next.text == "(":
        tokens.take()
        yield from _cast(tokens, dtypes)


def _cast(tokens: _Tokens, dtypes: DTypes) -> Iterator[Cast]:
    tokens.expect("(", _CAST_FORM)
    sources = [_dtype(tokens, dtypes)]
    while tokens.next.text == ",":
        tokens.take()
        sources.append(_dtype(tokens, dtypes))
    tokens.expect(")", _CAST_FORM)
    tokens.expect("->", _CAST_FORM)
    target, _ = _dtype(tokens, dtypes)
    for source, span in sources:
        if source is not None and target is not None:
            yield Cast(source=source, target=target, span=span)


def _dtype(tokens: _Tokens, dtypes: DTypes) -> tuple[DType | None, Span]:
    token = tokens.word("a dtype", _CAST_FORM)
    dtype = dtypes.worded(token.text)
    if dtype is None:
        words = [t.word for t in dtypes.types]
        hint = suggestion(token.text, words) or f"the dtypes are {', '.join(words)}"
        tokens.diagnostics.error("unknown-dtype", f"there is no dtype '{token.text}'", token.span, hint)
    return dtype, token.span


def read_layouts(leaf: Leaf, diagnostics: Diagnostics) -> tuple[Layouts, ...]:
    """The layouts of `NCHW, weight(NHWC)`: of all tensors first, then of single arguments."""
    tokens = _Tokens(leaf, diagnostics)
    common: list[_Token] = []
    single: list[Layouts] = []
    try:
        while True:
            token = tokens.word("a layout", _LAYOUT_FORM)
            if tokens.next.text == "(":
                single.append(_layouts_of(token, tokens))
            else:
                common.append(token)
            if tokens.next.text != ",":
                break
            tokens.take()
        tokens.finish(_LAYOUT_FORM)
    except _Fault:
        return ()
    if not common:
        return tuple(single)
    return (Layouts(param=None, names=_known_layouts(common, diagnostics), span=common[0].span), *single)


def read_names(leaf: Leaf, diagnostics: Diagnostics) -> tuple[tuple[str, Span], ...]:
    """The arguments of `input, mask`."""
    form = "write true, false, or arguments: input, mask"
    tokens = _Tokens(leaf, diagnostics)
    names: list[tuple[str, Span]] = []
    try:
        while True:
            token = tokens.word("an argument", form)
            names.append((token.text, token.span))
            if tokens.next.text != ",":
                break
            tokens.take()
        tokens.finish(form)
    except _Fault:
        return ()
    return tuple(names)


def _layouts_of(name: _Token, tokens: _Tokens) -> Layouts:
    tokens.take()
    words = [tokens.word("a layout", _LAYOUT_FORM)]
    while tokens.next.text == ",":
        tokens.take()
        words.append(tokens.word("a layout", _LAYOUT_FORM))
    tokens.expect(")", _LAYOUT_FORM)
    return Layouts(param=name.text, names=_known_layouts(words, tokens.diagnostics), span=name.span)


def _known_layouts(tokens: list[_Token], diagnostics: Diagnostics) -> tuple[str, ...]:
    """The names without ND, which asks for nothing."""
    names: list[str] = []
    for token in tokens:
        if token.text not in LAYOUTS:
            hint = suggestion(token.text, LAYOUTS) or f"the layouts are {listing(LAYOUTS)}"
            diagnostics.error("unknown-layout", f"there is no layout '{token.text}'", token.span, hint)
        elif token.text != "ND":
            names.append(token.text)
    return tuple(names)
