"""Reads a vendor's convert_config.yaml into rules, in the established form; every mistake with its place."""

from collections.abc import Iterable
from collections.abc import Sequence as Listed
from dataclasses import replace
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Severity, Span
from diopigen.model.op import Function
from diopigen.model.vendor import Rule
from diopigen.source.vendor.conversion_body import PROPERTIES, Body, read_body
from diopigen.source.vendor.conversion_text import Reading
from diopigen.source.yaml.nodes import BREAK, Entry, Leaf, Mapping, Node, Sequence, parse_yaml, read_text
from diopigen.source.yaml.wide_characters import plain_characters
from diopigen.text import nearest, suggestion
from diopigen.vocabulary.dtype import DTypes

_COMMON = "common_config"
_PREFIX = "diopi"


def read_convert_config(
    path: Path, shown: str, functions: Listed[Function], dtypes: DTypes, diagnostics: Diagnostics
) -> tuple[Rule, ...]:
    """The rules of `path` in the file's order; an entry with an error is left out, the others go on.

    A vendor without the file has no rules.
    """
    if not path.exists():
        return ()
    text = read_text(path, shown, diagnostics)
    if text is None:
        return ()
    plain = plain_characters(text, shown, diagnostics)
    node = None if plain is None else parse_yaml(plain, shown, diagnostics)
    if node is None or (isinstance(node, Mapping) and not node.entries):
        return ()
    if not isinstance(node, Sequence):
        diagnostics.error("wrong-kind", "convert_config.yaml is a list of entries", node.span, "write - diopiAdd: ...")
        return ()
    reading = Reading(dtypes=dtypes, lines=tuple(BREAK.split(text)), diagnostics=diagnostics)
    return _Reader(functions, reading).rules(node)


class _Reader:
    """Reads the entries of one file; of several entries of a function the last holds."""

    def __init__(self, functions: Listed[Function], reading: Reading) -> None:
        self.functions = {f.symbol: f for f in functions}
        self.reading = reading
        self.diagnostics = reading.diagnostics
        self.last: dict[str, Span] = {}

    def rules(self, node: Sequence) -> tuple[Rule, ...]:
        found = [rule for item in node.items for rule in self._item(item)]
        return tuple(left for rule in found if rule is not None and (left := self._holding(rule)) is not None)

    def _holding(self, rule: Rule) -> Rule | None:
        """The rule for the functions that have no later entry; None if all of them do."""
        functions = tuple((name, span) for name, span in rule.functions if self.last[name] == span)
        return None if rule.functions and not functions else replace(rule, functions=functions)

    def _item(self, item: Node) -> Iterable[Rule | None]:
        if (isinstance(item, Leaf) and item.value is None) or (isinstance(item, Mapping) and not item.entries):
            self.diagnostics.warning("empty-entry", "this entry is empty", item.span, "remove it")
            return
        if not isinstance(item, Mapping):
            what = f"'{item.text}'" if isinstance(item, Leaf) else "this"
            self.diagnostics.error("wrong-kind", f"{what} is empty", item.span, "write - diopiAdd: ...")
            return
        if item.entry("ops") is not None:
            yield self._listed(item)
        elif _beside(item):
            yield self._rule([item.entries[0].key], item.entries[1:], item.entries[0].key.span)
        else:
            for entry in item.entries:
                yield self._named(entry)

    def _listed(self, item: Mapping) -> Rule | None:
        """`ops: [diopiA, diopiB]` with the body beside it."""
        names = item.get("ops")
        items = names.items if isinstance(names, Sequence) else ()
        leaves = [item for item in items if isinstance(item, Leaf)]
        if not leaves or len(leaves) < len(items):
            span = item.span if names is None else names.span
            self.diagnostics.error("wrong-kind", "'ops' needs a list of functions", span, "write ops: [diopiAdd]")
            return None
        body = tuple(entry for entry in item.entries if entry.key.text != "ops")
        return self._rule(leaves, body, leaves[0].span)

    def _named(self, entry: Entry) -> Rule | None:
        """`diopiA:` or `common_config:` with the body below it."""
        if isinstance(entry.value, Mapping):
            return self._rule([entry.key], entry.value.entries, entry.key.span)
        if isinstance(entry.value, Leaf) and entry.value.value is None:
            return self._rule([entry.key], (), entry.key.span)
        if entry.key.text in PROPERTIES:
            self.diagnostics.error(
                "stray-key",
                f"'{entry.key.text}' is outside of an entry",
                entry.key.span,
                "indent it below a function, or name functions with 'ops'",
            )
        else:
            glued = isinstance(entry.value, Leaf) and entry.value.text.partition(":")[0] in PROPERTIES
            hint = "write a space after the colon" if glued else "write its properties below it"
            self.diagnostics.error("wrong-kind", f"'{entry.key.text}' needs a mapping", entry.value.span, hint)
        return None

    def _rule(self, names: list[Leaf], body: tuple[Entry, ...], span: Span) -> Rule | None:
        """The rule of one entry; None if it has an error, or speaks of functions of other contracts only."""
        before = self._errors()
        common = any(name.text == _COMMON for name in names)
        functions = tuple(found for name in names if name.text != _COMMON and (found := self._function(name)))
        if common:
            self._common(names[0].span)
        if not body:
            hint = "remove it, or indent its contents below it"
            self.diagnostics.warning("empty-entry", f"'{names[0].text}' says nothing", span, hint)
        said = read_body(names[0].text, body, self.reading)
        self._check_params(functions, common, said)
        if self._errors() > before or not (functions or common):
            return None
        return Rule(
            functions=functions,
            casts=said.casts,
            layouts=said.layouts,
            contiguous=said.contiguous,
            composite=said.composite,
            implementation=said.implementation,
            span=span,
        )

    def _errors(self) -> int:
        return sum(finding.severity is Severity.ERROR for finding in self.diagnostics.found)

    # -- names ------------------------------------------------------------------------------------------------

    def _function(self, name: Leaf) -> tuple[str, Span] | None:
        """The function, or None after a finding. One file may serve contracts with other functions than this one."""
        message = f"there is no function '{name.text}'"
        if name.text in self.functions:
            self._override(name)
            return name.text, name.span
        if name.text.startswith(_PREFIX) and name.text.isidentifier():
            message = f"this contract has no function '{name.text}', so its entry has no effect"
            near = nearest(name.text.removeprefix(_PREFIX), (known.removeprefix(_PREFIX) for known in self.functions))
            hint = "keep it for a contract that has it" if near is None else f"did you mean '{_PREFIX}{near}'?"
            self.diagnostics.warning("absent-function", message, name.span, hint, about=(name.text,))
            self._override(name)
        else:
            hint = suggestion(name.text, (_COMMON, *self.functions)) or "functions begin with 'diopi'"
            self.diagnostics.error("unknown-function", message, name.span, hint)
        return None

    def _override(self, name: Leaf) -> None:
        """From here on the entry at `name` is the one that holds."""
        earlier = self.last.get(name.text)
        self.last[name.text] = name.span
        if earlier is not None:
            self.diagnostics.warning(
                "overridden-entry",
                f"'{name.text}' has a later entry, which replaces it",
                earlier,
                "remove this one",
                (("the later one is here", name.span),),
            )

    def _common(self, span: Span) -> None:
        earlier = self.last.setdefault(_COMMON, span)
        if earlier != span:
            self.diagnostics.error(
                "duplicate-entry",
                f"'{_COMMON}' has an entry already",
                span,
                "write one entry",
                (("the first is here", earlier),),
            )

    def _check_params(self, functions: tuple[tuple[str, Span], ...], common: bool, body: Body) -> None:
        """Every argument named must be a tensor of every function of the entry."""
        named = [(item.param, item.span) for item in body.said if item.param is not None]
        for symbol, _ in functions:
            tensors = [p.name for p in self.functions[symbol].params if p.tensor is not None]
            for name, span in named:
                if name not in tensors:
                    self.diagnostics.error(
                        "unknown-arg",
                        f"'{symbol}' has no tensor '{name}'",
                        span,
                        suggestion(name, tensors) or f"its tensors are {', '.join(tensors)}",
                    )
        if common and named:
            self.diagnostics.error(
                "unknown-arg",
                f"'{_COMMON}' applies to all tensors, not to '{named[0][0]}'",
                named[0][1],
                "write it in the entry of a function",
            )


def _beside(item: Mapping) -> bool:
    """Whether the properties stand beside the name, at its indentation, instead of below it."""
    name, *others = item.entries
    empty = isinstance(name.value, Leaf) and name.value.value is None
    return empty and name.key.text not in PROPERTIES and any(entry.key.text in PROPERTIES for entry in others)
