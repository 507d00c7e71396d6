"""Reads a vendor's convert_config.yaml into rules, in the established form; every mistake with its place."""

from collections.abc import Iterable
from collections.abc import Sequence as Listed
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.dtype import DTypes
from diopigen.model.op import Function
from diopigen.model.vendor import Cast, Contiguous, Layouts, Rule, TensorCasts
from diopigen.source.conversion_text import read_casts, read_layouts, read_names, read_tensor_casts
from diopigen.source.yaml_nodes import Entry, Leaf, Mapping, Node, Sequence, read_yaml
from diopigen.text import suggestion

_KEYS = ("dtype", "tensor_dtype", "layout", "contiguous", "supportComposite", "implementation")
_COMMON = "common_config"


def read_convert_config(
    path: Path, shown: str, functions: Listed[Function], dtypes: DTypes, diagnostics: Diagnostics
) -> tuple[Rule, ...]:
    """The rules of `path` in the file's order; an entry with an error is left out, the others go on.

    A vendor without the file has no rules.
    """
    if not path.exists():
        return ()
    node = read_yaml(path, shown, diagnostics)
    if node is None:
        return ()
    if isinstance(node, Mapping) and not node.entries:
        return ()
    if not isinstance(node, Sequence):
        diagnostics.error("wrong-kind", "convert_config.yaml is a list of entries", node.span, "write - diopiAdd: ...")
        return ()
    return _Reader(functions, dtypes, diagnostics).rules(node)


class _Reader:
    """Reads the entries of one file; keeps which functions had one."""

    def __init__(self, functions: Listed[Function], dtypes: DTypes, diagnostics: Diagnostics) -> None:
        self.functions = {f.symbol: f for f in functions}
        self.dtypes = dtypes
        self.diagnostics = diagnostics
        self.first: dict[str, Span] = {}

    def rules(self, node: Sequence) -> tuple[Rule, ...]:
        found = (rule for item in node.items for rule in self._item(item))
        return tuple(rule for rule in found if rule is not None)

    def _item(self, item: Node) -> Iterable[Rule | None]:
        if not isinstance(item, Mapping):
            what = f"'{item.text}'" if isinstance(item, Leaf) else "this"
            self.diagnostics.error("wrong-kind", f"{what} has nothing to say", item.span, "write - diopiAdd: ...")
            return
        if item.entry("ops") is not None:
            yield self._listed(item)
            return
        for entry in item.entries:
            yield self._named(entry)

    def _listed(self, item: Mapping) -> Rule | None:
        """`ops: [diopiA, diopiB]` with the body beside it."""
        names = item.get("ops")
        leaves = [n for n in names.items if isinstance(n, Leaf)] if isinstance(names, Sequence) else []
        if not leaves:
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
        if entry.key.text in _KEYS:
            self.diagnostics.error(
                "stray-key",
                f"'{entry.key.text}' stands outside of an entry",
                entry.key.span,
                "indent it below a function, or name functions with 'ops'",
            )
        else:
            self.diagnostics.error("wrong-kind", f"'{entry.key.text}' needs a mapping", entry.value.span)
        return None

    def _rule(self, names: list[Leaf], body: tuple[Entry, ...], span: Span) -> Rule | None:
        before = len(self.diagnostics.found)
        functions = tuple(self._function(name) for name in names if name.text != _COMMON)
        if any(name.text == _COMMON for name in names):
            self._once(_COMMON, names[0].span)
        if not body:
            self.diagnostics.error(
                "empty", f"'{names[0].text}' says nothing", span, f"its properties are {', '.join(_KEYS)}"
            )
        casts = self._casts([e for e in body if e.key.text == "dtype"])
        tensor_casts = tuple(t for e in body if e.key.text == "tensor_dtype" for t in self._tensor_casts(e.value))
        layouts = tuple(t for e in body if e.key.text == "layout" for t in self._layouts(e))
        contiguous = tuple(c for e in body if e.key.text == "contiguous" for c in self._contiguous(e))
        composite = next((e for e in body if e.key.text == "supportComposite"), None)
        for entry in body:
            if entry.key.text not in _KEYS:
                hint = suggestion(entry.key.text, _KEYS) or f"the properties are {', '.join(_KEYS)}"
                self.diagnostics.error(
                    "unknown-key",
                    f"'{names[0].text}' has no property '{entry.key.text}'",
                    entry.key.span,
                    hint,
                )
        implementation = next((e for e in body if e.key.text == "implementation"), None)
        self._check_params(
            functions,
            [
                *((item.param, item.span) for item in tensor_casts),
                *((item.param, item.span) for item in layouts if item.param is not None),
                *((item.param, item.span) for item in contiguous if item.param is not None),
            ],
        )
        rule = Rule(
            functions=tuple(f for f in functions if f is not None),
            casts=casts,
            tensor_casts=tensor_casts,
            layouts=layouts,
            contiguous=contiguous,
            composite=None if composite is None else self._flag(composite),
            implementation=None if implementation is None else self._implementation(implementation),
            span=span,
        )
        return rule if len(self.diagnostics.found) == before else None

    # -- names ------------------------------------------------------------------------------------------------

    def _function(self, name: Leaf) -> tuple[str, Span] | None:
        if name.text not in self.functions:
            self.diagnostics.error(
                "unknown-function",
                f"there is no function '{name.text}'",
                name.span,
                suggestion(name.text, (*self.functions, _COMMON)),
            )
            return None
        return (name.text, name.span) if self._once(name.text, name.span) else None

    def _once(self, name: str, span: Span) -> bool:
        if name in self.first:
            self.diagnostics.error(
                "duplicate-entry",
                f"'{name}' has an entry already",
                span,
                "write one entry",
                (("the first is here", self.first[name]),),
            )
            return False
        self.first[name] = span
        return True

    def _check_params(
        self,
        functions: tuple[tuple[str, Span] | None, ...],
        named: Listed[tuple[str, Span]],
    ) -> None:
        """Every argument named must be a tensor of every function of the entry."""
        for function in functions:
            if function is None:
                continue
            tensors = [p.name for p in self.functions[function[0]].params if p.tensor is not None]
            for name, span in named:
                if name not in tensors:
                    self.diagnostics.error(
                        "unknown-arg",
                        f"'{function[0]}' has no tensor '{name}'",
                        span,
                        suggestion(name, tensors) or f"its tensors are {', '.join(tensors)}",
                    )
        if not functions and named:
            self.diagnostics.error(
                "unknown-arg",
                f"'{_COMMON}' speaks of all tensors, not of '{named[0][0]}'",
                named[0][1],
                "write it in the entry of a function",
            )

    # -- bodies -----------------------------------------------------------------------------------------------

    def _casts(self, entries: list[Entry]) -> tuple[Cast, ...]:
        return self._checked(tuple(c for e in entries for leaf in self._leaves(e) for c in self._read(leaf)))

    def _read(self, leaf: Leaf) -> tuple[Cast, ...]:
        return read_casts(leaf, self.dtypes, self.diagnostics)

    def _tensor_casts(self, node: Node) -> Iterable[TensorCasts]:
        if isinstance(node, Mapping):
            for entry in node.entries:
                yield TensorCasts(param=entry.key.text, casts=self._casts([entry]), span=entry.key.span)
        elif isinstance(node, Leaf) and node.text:
            for found in read_tensor_casts(node, self.dtypes, self.diagnostics):
                yield TensorCasts(param=found.param, casts=self._checked(found.casts), span=found.span)
        else:
            self.diagnostics.error(
                "wrong-kind", "'tensor_dtype' needs a mapping", node.span, "write {bias: (float16)->float32}"
            )

    def _layouts(self, entry: Entry) -> Iterable[Layouts]:
        for leaf in self._leaves(entry):
            yield from read_layouts(leaf, self.diagnostics)

    def _contiguous(self, entry: Entry) -> Iterable[Contiguous]:
        """`true`, `false`, or the arguments that must be contiguous: `input, mask`."""
        value = entry.value
        if isinstance(value, Leaf) and isinstance(value.value, bool):
            yield Contiguous(param=None, wanted=value.value, span=entry.key.span)
            return
        for leaf in self._leaves(entry):
            for name, span in read_names(leaf, self.diagnostics):
                yield Contiguous(param=name, wanted=True, span=span)

    def _implementation(self, entry: Entry) -> tuple[str, Span] | None:
        if isinstance(entry.value, Leaf) and entry.value.text:
            return entry.value.text, entry.value.span
        self.diagnostics.error(
            "wrong-kind", "'implementation' needs one name", entry.value.span, "write implementation: portable"
        )
        return None

    def _leaves(self, entry: Entry) -> list[Leaf]:
        """One text, or a list of them."""
        value = entry.value
        leaves = [value] if isinstance(value, Leaf) else []
        if isinstance(value, Sequence):
            leaves = [item for item in value.items if isinstance(item, Leaf)]
        if not leaves or not leaves[0].text.strip():
            self.diagnostics.error("empty", f"'{entry.key.text}' says nothing", entry.key.span)
            return []
        return leaves

    def _flag(self, entry: Entry) -> bool:
        if isinstance(entry.value, Leaf) and isinstance(entry.value.value, bool):
            return entry.value.value
        self.diagnostics.error("wrong-kind", f"'{entry.key.text}' is true or false", entry.value.span)
        return False

    def _checked(self, casts: tuple[Cast, ...]) -> tuple[Cast, ...]:
        """No dtype twice, none to itself, none to a dtype that is cast away."""
        first: dict[str, Cast] = {}
        for cast in casts:
            word = cast.source.word
            if cast.source == cast.target:
                self.diagnostics.error("cast-to-itself", f"'{word}' is cast to itself", cast.span)
            if word in first:
                related = (("the first is here", first[word].span),)
                self.diagnostics.error("duplicate-cast", f"'{word}' is cast twice", cast.span, related=related)
            first.setdefault(word, cast)
        for cast in casts:
            onward = first.get(cast.target.word)
            if onward is not None and cast.source != cast.target and onward.source != onward.target:
                self.diagnostics.error(
                    "cast-chain",
                    f"'{cast.source.word}' is cast to '{cast.target.word}', which is cast away itself",
                    cast.span,
                    f"cast '{cast.source.word}' to '{onward.target.word}'",
                    (("the next cast is here", onward.span),),
                )
        return casts
