"""The YAML of schemas/patterns.yaml to the model."""

from diopigen.diagnostics import Diagnostics
from diopigen.model.op import Literal, Place
from diopigen.model.pattern import Input, Launches, Pattern, Spelling, Written
from diopigen.passes.contract.dtype_sets import dtype_sets
from diopigen.source.schema.exprs import parse_expr
from diopigen.source.schema.pattern_surface import PatternSurface
from diopigen.source.schema.types import parse_arg
from diopigen.source.yaml.nodes import Entry, Leaf, Mapping, Node, Sequence, plain, root_of
from diopigen.source.yaml.validate import fits
from diopigen.vocabulary.dtype import DTypes


def read_patterns(text: str, shown: str, dtypes: DTypes, diagnostics: Diagnostics) -> tuple[Pattern, ...]:
    """The idioms of a text, those with an error left out; `shown` is the path of its places."""
    node = root_of(text, shown, diagnostics, empty=False)
    if node is None:
        return ()
    if not isinstance(node, Mapping):
        diagnostics.error("wrong-kind", "patterns.yaml is a mapping from names to patterns", node.span)
        return ()
    fitting = [e for e in node.entries if fits(e.value, PatternSurface, e.key.text, diagnostics)]
    read = (_Reader(entry, dtypes, diagnostics).pattern() for entry in fitting)
    return tuple(pattern for pattern in read if pattern is not None)


class _Reader:
    """Reads one idiom, whose shape was held against the surface."""

    def __init__(self, entry: Entry, dtypes: DTypes, diagnostics: Diagnostics) -> None:
        assert isinstance(entry.value, Mapping)
        self.key, self.node, self.dtypes, self.outer = entry.key, entry.value, dtypes, diagnostics
        self.own = Diagnostics()

    def pattern(self) -> Pattern | None:
        """The idiom, or None after diagnostics."""
        surface = PatternSurface.model_validate(plain(self.node))
        becomes = self.node.get("becomes")
        made = Pattern(
            name=self.key.text,
            doc=" ".join(surface.doc.split()),
            by=tuple(_place(leaf) for leaf in _leaves(self.node.get("by"))),
            own=surface.own,
            inputs=self._inputs(),
            without_gradient=tuple(_place(leaf) for leaf in _leaves(self.node.get("without_gradient"))),
            where=dtype_sets(self.node.get("where"), self.dtypes, self.own),
            parts=tuple((e.key.text, self._expressions(e.value)) for e in _entries(self.node.get("parts"))),
            match=tuple(s for row in _items(self.node.get("match")) if (s := self._spelling(row)) is not None),
            when=self._expressions(self.node.get("when")),
            becomes=self._written(becomes) if isinstance(becomes, Leaf) else None,
            launches=Launches(forward=surface.launches.forward, backward=surface.launches.backward),
            examples=tuple(_example(row) for row in _items(self.node.get("examples"))),
            span=self.key.span,
        )
        self.outer.add(*self.own.found)
        return None if self.own.failed else made

    def _inputs(self) -> tuple[Input, ...]:
        read = (
            (entry.key.text, parse_arg(entry.value, self.dtypes, self.own))
            for entry in _entries(self.node.get("inputs"))
            if isinstance(entry.value, Leaf)
        )
        return tuple(
            Input(name=name, type=line.type, default=line.default, has_default=line.has_default)
            for name, line in read
            if line is not None
        )

    def _spelling(self, row: Node) -> Spelling | None:
        leaf = row.get("written") if isinstance(row, Mapping) else row
        assert isinstance(leaf, Leaf)
        written = self._written(leaf)
        sets = row.get("sets") if isinstance(row, Mapping) else None
        return None if written is None else Spelling(written=written, sets=_example(sets))

    def _expressions(self, node: Node | None) -> tuple[Written, ...]:
        return tuple(written for leaf in _leaves(node) if (written := self._written(leaf)) is not None)

    def _written(self, leaf: Leaf) -> Written | None:
        expr = parse_expr(leaf, self.own)
        return None if expr is None else Written(expr=expr, place=_place(leaf))


def _place(leaf: Leaf) -> Place:
    return Place(text=leaf.text, span=leaf.span)


def _entries(node: Node | None) -> tuple[Entry, ...]:
    return node.entries if isinstance(node, Mapping) else ()


def _items(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else ()


def _leaves(node: Node | None) -> tuple[Leaf, ...]:
    """One leaf stands for a list of one."""
    items = (node,) if isinstance(node, Leaf) else _items(node)
    return tuple(item for item in items if isinstance(item, Leaf))


def _example(node: Node | None) -> tuple[tuple[str, Literal], ...]:
    return tuple((entry.key.text, _literal(entry.value)) for entry in _entries(node))


def _literal(node: Node) -> Literal:
    if isinstance(node, Sequence):
        return tuple(_literal(item) for item in node.items)
    return node.value if isinstance(node, Leaf) else None
