"""Reads what one entry of convert_config.yaml says: its properties, checked each by itself."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from diopigen.diagnostics import Span
from diopigen.model.vendor import Cast, Casts, Contiguous, Layouts, Said
from diopigen.source.vendor.conversion_text import (
    NONE,
    Reading,
    read_casts,
    read_layouts,
    read_names,
    read_tensor_casts,
)
from diopigen.source.vendor.surface import ConversionSurface
from diopigen.source.yaml.nodes import Entry, Leaf, Mapping, Sequence
from diopigen.text import suggestion

PROPERTIES = tuple(ConversionSurface.model_fields)

# YAML 1.1 reads these as true and false, YAML 1.2 as words.
_FLAGS = {"yes": "true", "on": "true", "no": "false", "off": "false"}

_Said = TypeVar("_Said", Casts, Layouts, Contiguous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """What an entry says; what it does not speak of is empty or None."""

    casts: tuple[Casts, ...]
    layouts: tuple[Layouts, ...]
    contiguous: tuple[Contiguous, ...]
    composite: bool | None  # supportComposite
    implementation: tuple[str, Span] | None  # e.g. ("portable", span)

    @property
    def said(self) -> tuple[Said, ...]:
        return (*self.casts, *self.layouts, *self.contiguous)


def read_body(name: str, entries: tuple[Entry, ...], reading: Reading) -> Body:
    """The properties of the entry of `name`, after a diagnostic for each mistake."""
    body = _Body(reading)
    named = {entry.key.text: entry for entry in entries}
    for entry in entries:
        if entry.key.text not in PROPERTIES:
            body.unknown(name, entry.key)

    def each(key: str, read: Callable[[Entry], Iterable[_Said]]) -> tuple[_Said, ...]:
        return tuple(read(named[key])) if key in named else ()

    composite, implementation = named.get("supportComposite"), named.get("implementation")
    return Body(
        casts=body.once((*each("tensor_dtype", body.tensor_casts), *each("dtype", body.casts))),
        layouts=body.once(each("layout", body.layouts)),
        contiguous=body.once(each("contiguous", body.contiguous)),
        composite=None if composite is None else body.flag(composite),
        implementation=None if implementation is None else body.implementation(implementation),
    )


class _Body:
    """Reads single properties."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.diagnostics = reading.diagnostics

    def unknown(self, name: str, key: Leaf) -> None:
        if key.text.startswith("diopi"):
            hint = f"write - {key.text}: for an entry of its own"
        else:
            hint = suggestion(key.text, PROPERTIES) or f"the properties are {', '.join(PROPERTIES)}"
        self.diagnostics.error("unknown-key", f"'{name}' has no property '{key.text}'", key.span, hint)

    def casts(self, entry: Entry) -> Iterator[Casts]:
        """`(float64)->float32, ...` of every tensor."""
        leaves = self._leaves(entry, "(float64)->float32")
        if leaves:
            casts = self._checked(tuple(cast for leaf in leaves for cast in read_casts(leaf, self.reading)))
            if casts or leaves[0].text.strip() == NONE:
                yield Casts(param=None, casts=casts, span=casts[0].span if casts else leaves[0].span)

    def tensor_casts(self, entry: Entry) -> Iterator[Casts]:
        """`{bias: (float16)->float32}`, or the same as one text."""
        node = entry.value
        if isinstance(node, Mapping):
            for single in node.entries:
                for casts in self.casts(single):
                    yield Casts(param=single.key.text, casts=casts.casts, span=single.key.span)
        elif isinstance(node, Leaf) and node.value is not None:
            for found in read_tensor_casts(node, self.reading):
                yield Casts(param=found.param, casts=self._checked(found.casts), span=found.span)
        elif isinstance(node, Leaf):
            self._empty(entry)
        else:
            self.diagnostics.error(
                "wrong-kind", "'tensor_dtype' needs a mapping", node.span, "write {bias: (float16)->float32}"
            )

    def layouts(self, entry: Entry) -> Iterator[Layouts]:
        for leaf in self._leaves(entry, "NCHW, weight(NHWC)"):
            yield from read_layouts(leaf, self.reading)

    def contiguous(self, entry: Entry) -> Iterator[Contiguous]:
        """`true`, `false`, or the arguments that must be contiguous: `input, mask`."""
        value = entry.value
        if isinstance(value, Leaf) and isinstance(value.value, bool):
            yield Contiguous(param=None, wanted=value.value, span=entry.key.span)
            return
        if isinstance(value, Leaf) and value.text.lower() in _FLAGS:
            self.flag(entry)
            return
        for leaf in self._leaves(entry, "true, false, or arguments: input, mask"):
            for name, span in read_names(leaf, self.reading):
                yield Contiguous(param=name, wanted=True, span=span)

    def implementation(self, entry: Entry) -> tuple[str, Span] | None:
        if isinstance(entry.value, Leaf) and entry.value.text:
            return entry.value.text, entry.value.span
        self.diagnostics.error(
            "wrong-kind", "'implementation' needs one name", entry.value.span, "write implementation: portable"
        )
        return None

    def flag(self, entry: Entry) -> bool:
        value = entry.value
        if isinstance(value, Leaf) and isinstance(value.value, bool):
            return value.value
        meant = _FLAGS.get(value.text.lower()) if isinstance(value, Leaf) else None
        hint = None if meant is None else f"did you mean '{meant}'?"
        self.diagnostics.error("wrong-kind", f"'{entry.key.text}' is true or false", value.span, hint)
        return False

    def once(self, found: tuple[_Said, ...]) -> tuple[_Said, ...]:
        """Nothing is said twice of one argument."""
        first: dict[str | None, Span] = {}
        for item in found:
            if item.param is not None and item.param in first:
                related = (("the first is here", first[item.param]),)
                message = f"'{item.param}' stands twice"
                self.diagnostics.error("duplicate-key", message, item.span, "remove one of them", related)
            first.setdefault(item.param, item.span)
        return found

    def _leaves(self, entry: Entry, form: str) -> list[Leaf]:
        """One text, or a list of them."""
        value = entry.value
        if isinstance(value, Leaf) and value.value is None:
            self._empty(entry)
            return []
        leaves = list(value.items) if isinstance(value, Sequence) else [value]
        texts = [leaf for leaf in leaves if isinstance(leaf, Leaf) and leaf.text.strip()]
        if not texts or len(texts) < len(leaves):
            self.diagnostics.error("wrong-kind", f"'{entry.key.text}' needs a string", value.span, f"write {form}")
            return []
        return texts

    def _empty(self, entry: Entry) -> None:
        self.diagnostics.warning("empty-entry", f"'{entry.key.text}' says nothing", entry.key.span, "remove it")

    def _checked(self, casts: tuple[Cast, ...]) -> tuple[Cast, ...]:
        """No dtype twice, none to itself, none to a dtype that is cast away."""
        first: dict[str, Cast] = {}
        for cast in casts:
            word = cast.source.word
            if cast.source == cast.target:
                self.diagnostics.error(
                    "cast-to-itself", f"'{word}' is cast to itself", cast.span, f"remove it: '{word}' stays as it is"
                )
            if word in first:
                related = (("the first is here", first[word].span),)
                self.diagnostics.error("duplicate-cast", f"'{word}' is cast twice", cast.span, related=related)
            first.setdefault(word, cast)
        self._unchained(casts, first)
        return casts

    def _unchained(self, casts: tuple[Cast, ...], first: dict[str, Cast]) -> None:
        """No cast leads to what `first` casts away; two that lead to each other are one mistake."""
        done: set[Span] = set()
        for cast in casts:
            onward = first.get(cast.target.word)
            if onward is None or onward.source == onward.target or cast.source == cast.target or cast.span in done:
                continue
            back = onward.target == cast.source
            if back:
                done.add(onward.span)
            self.diagnostics.error(
                "cast-chain",
                f"'{cast.source.word}' is cast to '{cast.target.word}', which is itself cast",
                cast.span,
                "remove one of them" if back else f"cast '{cast.source.word}' to '{onward.target.word}'",
                (("the next cast is here", onward.span),),
            )
