"""Text to model: reads a file of schemas/ops and gives its ops, each name looked up."""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from diopigen.diagnostics import Diagnostics, Part, Span
from diopigen.model.expr import Call, Expr
from diopigen.model.op import (
    NOWHERE,
    Arg,
    AtenClause,
    Backward,
    CaseRow,
    CompiledClause,
    Form,
    Keep,
    Op,
    Place,
    Places,
)
from diopigen.model.type import Type
from diopigen.passes.contract.dtype_sets import dtype_sets
from diopigen.passes.contract.parts import entries_of, is_op_name, part_of
from diopigen.passes.contract.plain_values import (
    items,
    leaf_text,
    leaf_texts,
    leaves,
    listed_texts,
    literal,
    spanned,
    text_pairs,
    whole_numbers,
)
from diopigen.passes.contract.ranges import overflows
from diopigen.source.schema.exprs import parse_expr, parse_step
from diopigen.source.schema.statements import parse_statements
from diopigen.source.schema.surface import OpSurface
from diopigen.source.schema.types import TypeLine, parse_arg, parse_keep, parse_out
from diopigen.source.yaml import nodes
from diopigen.source.yaml.nodes import Leaf, Mapping, Node, Sequence
from diopigen.source.yaml.validate import fits
from diopigen.text import pascal, suggestion
from diopigen.vocabulary.checks import CLOSE
from diopigen.vocabulary.dtype import DTypes

DATA = "data"  # of a row under `cases:` no argument, but how the row has values drawn


Entry = tuple[Part, str, Callable[[], Op | None]]  # where an op is and what it defines, its name, what reads the rest


def entries(text: str, shown: str, topic: str, dtypes: DTypes, diagnostics: Diagnostics) -> Iterator[Entry]:
    """Those of one file in whose lines the YAML itself has no mistake; of an op with an error comes None."""
    for entry in entries_of(text, shown, diagnostics):
        yield part_of(entry), entry.key.text, _Reader(entry, topic, dtypes, diagnostics).op


def said(parts: object) -> str:
    """What parts of an entry say, wherever they stand."""
    return re.sub(r"Span\(path=.*?, line=\d+, column=\d+, length=\d+\)", "", repr(parts))


def _digest(op: Op) -> str:
    return hashlib.blake2b(said(replace(op, places=NOWHERE)).encode(), digest_size=16).hexdigest()


class _Reader:
    """Reads one op; keeps what every line of it needs."""

    def __init__(self, entry: nodes.Entry, topic: str, dtypes: DTypes, diagnostics: Diagnostics) -> None:
        self.name = entry.key.text
        self.span = entry.key.span
        self.node = entry.value
        self.topic = topic
        self.dtypes = dtypes
        self.outer = diagnostics
        self.diagnostics = Diagnostics()

    def op(self) -> Op | None:
        """The op, or None after diagnostics."""
        try:
            return self._op()
        finally:
            self.outer.add(*self.diagnostics.found)

    def _op(self) -> Op | None:
        if not is_op_name(self.name):
            self.diagnostics.error(
                "bad-name", f"'{self.name}' is not an op's name", self.span, "use lower case, digits and '_'"
            )
            return None
        if not fits(self.node, OpSurface, self.name, self.diagnostics):
            return None
        assert isinstance(self.node, Mapping)
        where = dtype_sets(self.node.get("where"), self.dtypes, self.diagnostics)
        args = self._args()
        outs = self._outs()
        if self.diagnostics.failed:
            return None
        op = Op(
            name=self.name,
            words=self._text("name") or pascal(self.name),
            topic=self.topic,
            header=self._text("header") or "functions",
            doc=self._sentence("doc") or "",
            math=self._text("math"),
            args=args,
            outs=outs,
            where=where,
            forms=tuple(Form(word) for word in self._words("variants")) or (Form.OUT,),
            symbols=tuple((Form(key), stem) for key, stem in self._pairs("names")),
            order=self._words("order") or None,
            c=self._pairs("c"),
            layouts=self._words("layouts"),
            kernel=self._expr(self.node.get("kernel")),
            reduce=self._text("reduce"),
            backward=self._backward(args, outs),
            aten=self._aten(),
            tolerance=self._tolerance(),
            check=self._text("check") or CLOSE.name,
            data=self._exprs("data"),
            cases=self._cases(),
            span=self.span,
            deprecated=self._sentence("deprecated"),
            places=Places.of(self.span.path, _places(self.node, "")),
            compose=parse_statements(self._mapping().get("compose"), self.dtypes, self.diagnostics),
        )
        return None if self.diagnostics.failed else replace(op, digest=_digest(op), bare_digest=_digest(op.bare()))

    # -- single properties ----------------------------------------------------------------------------------

    def _text(self, key: str) -> str | None:
        node = self._mapping().get(key)
        return node.text if isinstance(node, Leaf) else None

    def _sentence(self, key: str) -> str | None:
        """A text whose line breaks mean nothing."""
        text = self._text(key)
        return None if text is None else " ".join(text.split())

    def _mapping(self) -> Mapping:
        assert isinstance(self.node, Mapping)
        return self.node

    def _words(self, key: str) -> tuple[str, ...]:
        return leaf_texts(self._mapping().get(key))

    def _pairs(self, key: str) -> tuple[tuple[str, str], ...]:
        return text_pairs(self._mapping().get(key))

    def _expr(self, node: Node | None) -> Expr | None:
        return parse_expr(node, self.diagnostics) if isinstance(node, Leaf) else None

    def _check(self, node: Node) -> tuple[Call, Span] | None:
        if not isinstance(node, Leaf) or parse_step(node, self.diagnostics) is None:
            return None
        call = parse_expr(node, self.diagnostics)
        return (call, node.span) if isinstance(call, Call) else None

    def _exprs(self, key: str) -> tuple[tuple[str, Expr], ...]:
        return self._expr_pairs(self._mapping().get(key))

    def _expr_pairs(self, node: Node | None) -> tuple[tuple[str, Expr], ...]:
        if not isinstance(node, Mapping):
            return ()
        pairs = ((entry.key.text, self._expr(entry.value)) for entry in node.entries)
        return tuple((name, expr) for name, expr in pairs if expr is not None)

    def _args(self) -> tuple[Arg, ...]:
        node = self._mapping().get("args")
        lines = node.entries if isinstance(node, Mapping) else ()
        read = ((e, parse_arg(e.value, self.dtypes, self.diagnostics)) for e in lines if isinstance(e.value, Leaf))
        return tuple(_arg(entry, line) for entry, line in read if line is not None)

    def _outs(self) -> tuple[Arg, ...]:
        node = self._mapping().get("out")
        if isinstance(node, Leaf):
            line = parse_out(node, self.dtypes, self.diagnostics)
            key = self._mapping().entry("out")
            assert key is not None
            return () if line is None else (_arg(key, line),)
        lines = node.entries if isinstance(node, Mapping) else ()
        read = ((e, parse_out(e.value, self.dtypes, self.diagnostics)) for e in lines if isinstance(e.value, Leaf))
        return tuple(_arg(entry, line) for entry, line in read if line is not None)

    # -- blocks ---------------------------------------------------------------------------------------------

    def _backward(self, args: tuple[Arg, ...], outs: tuple[Arg, ...]) -> Backward | None:
        entry = self._mapping().entry("backward")
        if entry is None or not isinstance(entry.value, Mapping):
            return None
        block = entry.value
        known = {a.name: a.type for a in (*args, *outs)}
        default = tuple(("grad_output" if len(outs) == 1 else f"grad_{o.name}", o.name) for o in outs[:1])
        return Backward(
            name=leaf_text(block.get("name")),
            grads=tuple((g.rstrip("?"), g.endswith("?")) for g in leaf_texts(block.get("grads"))),
            grad_outputs=text_pairs(block.get("grad_outputs")) or tuple(("grad_output", o) for _, o in default),
            keeps=tuple(self._keeps(block.get("keeps"), known)),
            attrs=None if block.get("attrs") is None else leaf_texts(block.get("attrs")),
            order=leaf_texts(block.get("order")) or None,
            c=text_pairs(block.get("c")),
            kernel=self._expr(block.get("kernel")),
            math=leaf_text(block.get("math")),
            span=entry.key.span,
            compose=parse_statements(block.get("compose"), self.dtypes, self.diagnostics),
        )

    def _keeps(self, node: Node | None, known: dict[str, Type]) -> list[Keep]:
        keeps: list[Keep] = []
        for entry in node.entries if isinstance(node, Mapping) else ():
            name, value, span = entry.key.text, entry.value, entry.key.span
            source = name if not isinstance(value, Leaf) or value.value is None else value.text
            if source in known:
                type_: Type | None = known[source]
                keeps.append(Keep(name=name, source=source, type=type_ or known[source], span=span))
            elif source == name:
                hint = suggestion(name, known) or "give its type, or the argument that it is"
                self.diagnostics.error("unknown-arg", f"'{self.name}' has no argument or output '{name}'", span, hint)
            elif isinstance(value, Leaf):
                type_ = parse_keep(value, self.dtypes, self.diagnostics)
                if type_ is not None:
                    keeps.append(Keep(name=name, source=None, type=type_, span=span))
        return keeps

    def _aten(self) -> tuple[AtenClause, ...]:
        entry = self._mapping().entry("aten")
        if entry is None:
            return ()
        nodes = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
        return tuple(self._aten_clause(node) for node in nodes)

    def _aten_clause(self, node: Node) -> AtenClause:
        block = node if isinstance(node, Mapping) else Mapping(entries=(), span=node.span)
        forward = ((node.text, node.span),) if isinstance(node, Leaf) else spanned(block.get("forward"))
        derive = block.get("derive")
        derived = [(e.key.text, self._expr(e.value)) for e in derive.entries] if isinstance(derive, Mapping) else []
        require = block.get("require")
        return AtenClause(
            overloads=forward,
            backward=spanned(block.get("backward")),
            rename=text_pairs(block.get("rename")),
            require=(
                tuple((e.key.text, literal(e.value)) for e in require.entries) if isinstance(require, Mapping) else ()
            ),
            ranks=whole_numbers(block.get("rank")),
            ignore=leaf_texts(block.get("ignore")),
            derive=tuple((name, expr) for name, expr in derived if expr is not None),
            function=leaf_text(block.get("function")),
            raises=self._expr(block.get("raises")),
            wrapper=leaf_text(block.get("wrapper")),
            span=node.span,
            promote=leaf_texts(block.get("promote")),
            rounds=leaf_texts(block.get("rounds")),
            contiguous=leaf_text(block.get("memory_format")) == "contiguous",
            channels_of=leaf_texts(block.get("channels_of")),
            checks=tuple(check for item in items(block.get("checks")) if (check := self._check(item)) is not None),
            compiled=self._compiled(block.get("compiled")),
        )

    def _compiled(self, node: Node | None) -> CompiledClause:
        if not isinstance(node, Mapping):
            return CompiledClause()
        permute = literal(order) if (order := node.get("permute")) is not None else ()
        return CompiledClause(
            forward=spanned(node.get("forward")),
            backward=spanned(node.get("backward")),
            ranks=whole_numbers(node.get("rank")),
            derive=self._expr_pairs(node.get("derive")),
            when=tuple(expr for item in items(node.get("when")) if (expr := self._expr(item)) is not None),
            permute=permute,  # type: ignore[arg-type]
            results=whole_numbers(node.get("results")),
            draws=listed_texts(node.get("draws")),
        )

    def _tolerance(self) -> tuple[tuple[str, float, float], ...]:
        node = self._mapping().get("tolerance")
        found: list[tuple[str, float, float]] = []
        for entry in node.entries if isinstance(node, Mapping) else ():
            value = literal(entry.value)
            pair = value if isinstance(value, tuple) else (value, value)
            if self.dtypes.named(entry.key.text) is None:
                hint = suggestion(entry.key.text, [t.name for t in self.dtypes.types])
                self.diagnostics.error("unknown-dtype", f"there is no dtype '{entry.key.text}'", entry.key.span, hint)
            elif len(pair) != 2 or not all(isinstance(v, int | float) and v >= 0 for v in pair):
                self.diagnostics.error(
                    "bad-tolerance",
                    "a tolerance is one number, or a relative and an absolute one",
                    entry.value.span,
                    "write 1e-3 or [1e-3, 1e-5]",
                )
            else:
                found.append((entry.key.text, float(pair[0]), float(pair[1])))  # type: ignore[arg-type]
        return tuple(found)

    def _cases(self) -> tuple[CaseRow, ...]:
        node = self._mapping().get("cases")
        for leaf in leaves(node):
            if isinstance(leaf.value, float) and overflows(leaf.text):
                hint = "write 'inf' if that is intended"
                self.diagnostics.error("out-of-range", f"{leaf.text} is out of range for float", leaf.span, hint)
        return tuple(
            CaseRow(
                values=tuple((e.key.text, literal(e.value)) for e in row.entries if e.key.text != DATA),
                span=row.span,
                data=self._expr_pairs(row.get(DATA)),
            )
            for row in items(node)
            if isinstance(row, Mapping)
        )


def _places(node: Node, path: str) -> Iterator[tuple[str, Place]]:
    """Every value below `node` by its path: keys joined by dots, positions in lists left out of account."""
    if isinstance(node, Mapping):
        for entry in node.entries:
            inner = f"{path}.{entry.key.text}" if path else entry.key.text
            yield f"{inner}:", Place(text=entry.key.text, span=entry.key.span)
            yield from _places(entry.value, inner)
    elif isinstance(node, Leaf):
        yield path, Place(text=node.text, span=node.span)
    else:
        yield path, Place(text="", span=node.span)
        for item in node.items:
            if isinstance(item, Leaf):
                yield f"{path}.{item.text.rstrip('?')}", Place(text=item.text, span=item.span)


def _arg(entry: nodes.Entry, line: TypeLine) -> Arg:
    return Arg(
        name=entry.key.text,
        type=line.type,
        scalar=line.scalar,
        role=line.role,
        default=line.default,
        has_default=line.has_default,
        shape=line.shape,
        span=entry.key.span,
    )
