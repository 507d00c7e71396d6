"""The pages that lead to others: topics, functions, the run-time side of the contract."""

from dataclasses import dataclass

from diopigen.model.op import Op
from diopigen.model.runtime import CFunction, CParam, FunctionType, Runtime, TableEntry
from diopigen.targets.docs.markdown import code, prose
from diopigen.targets.docs.paths import FUNCTIONS, OPERATORS, operator_page, relative, topic_page
from diopigen.targets.docs.site import Index, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class OpLine:
    link: str  # e.g. "[add](add.md)"
    functions: str  # e.g. "`diopiAdd`, `diopiAddInp`"
    doc: str  # the first sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    source: str
    name: str
    ops: tuple[OpLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLine:
    link: str
    operators: int
    functions: int
    names: str  # e.g. "add, sub, mul"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsView:
    topics: tuple[TopicLine, ...]
    operators: int
    functions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLine:
    link: str
    op: str
    header: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionsView:
    functions: tuple[FunctionLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumeratorLine:
    name: str
    value: int
    doc: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumView:
    name: str
    doc: str
    enumerators: tuple[EnumeratorLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclarationView:
    name: str
    doc: str
    text: str  # e.g. "typedef void* (*malloc_func_t)(uint64_t bytes);"
    note: str  # e.g. "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    name: str  # e.g. "device"
    entries: tuple[DeclarationView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeView:
    enums: tuple[EnumView, ...]
    types: tuple[DeclarationView, ...]
    functions: tuple[DeclarationView, ...]
    tables: tuple[TableView, ...]


def topic_view(topic: str, ops: tuple[Op, ...], index: Index) -> TopicView:
    """The operators of one topic."""
    page = topic_page(topic)
    lines = tuple(
        OpLine(
            link=f"[{prose(op.name)}]({relative(page, operator_page(topic, op.name))})",
            functions=", ".join(code(f.symbol) for f in index.functions[op.name]),
            doc=prose(op.doc),
        )
        for op in ops
    )
    return TopicView(source=ops[0].span.path, name=prose(spoken(topic)), ops=lines)


def spoken(topic: str) -> str:
    """e.g. "Point cloud" for point_cloud."""
    words = topic.replace("_", " ")
    return words[:1].upper() + words[1:]


def operators_view(index: Index) -> OperatorsView:
    """All topics."""
    topics = tuple(
        TopicLine(
            link=f"[{prose(spoken(topic))}]({relative(OPERATORS, topic_page(topic))})",
            operators=len(ops),
            functions=sum(len(index.functions[op.name]) for op in ops),
            names=prose(", ".join(op.name for op in ops)),
        )
        for topic, ops in index.topics.items()
    )
    return OperatorsView(
        topics=topics,
        operators=sum(topic.operators for topic in topics),
        functions=sum(topic.functions for topic in topics),
    )


def functions_view(site: Site) -> FunctionsView:
    """All operator functions, in alphabetical order."""
    topics = {op.name: op.topic for op in site.program.ops}
    return FunctionsView(
        functions=tuple(
            FunctionLine(
                link=f"[`{f.symbol}`]({relative(FUNCTIONS, operator_page(topics[f.op], f.op), f.symbol.lower())})",
                op=prose(f.op),
                header=f"`diopi/{f.header}.h`",
            )
            for f in sorted(site.program.functions, key=lambda f: f.symbol)
        )
    )


def runtime_view(runtime: Runtime) -> RuntimeView:
    """Everything of the contract that is no operator."""
    return RuntimeView(
        enums=tuple(
            EnumView(
                name=enum.name,
                doc=prose(enum.doc),
                enumerators=tuple(
                    EnumeratorLine(name=code(e.name), value=e.value, doc=prose(e.doc)) for e in enum.enumerators
                ),
            )
            for enum in runtime.enums
        ),
        types=tuple(_type(type_) for type_ in runtime.function_types),
        functions=tuple(_function(function) for function in runtime.functions),
        tables=tuple(
            TableView(name=table.name, entries=tuple(_entry(entry) for entry in table.entries))
            for table in runtime.tables
        ),
    )


def _params(params: tuple[CParam, ...]) -> str:
    return ", ".join(f"{p.type} {p.name}".strip() for p in params) or "void"


def _type(type_: FunctionType) -> DeclarationView:
    text = f"typedef {type_.returns} (*{type_.name})({_params(type_.params)});"
    return DeclarationView(name=type_.name, doc=prose(type_.doc), text=text, note="")


def _function(function: CFunction) -> DeclarationView:
    text = f"{function.returns} {function.name}({_params(function.params)});"
    return DeclarationView(name=function.name, doc=prose(function.doc), text=text, note=f"`diopi/{function.header}.h`")


def _entry(entry: TableEntry) -> DeclarationView:
    text = f"{entry.returns} (*{entry.name})({_params(entry.params)});"
    return DeclarationView(
        name=entry.name,
        doc=prose(entry.doc),
        text=text if entry.type is None else f"{entry.type} {entry.name};",
        note="required" if entry.required else "optional",
    )
