"""Reads dtypes.yaml and runtime.yaml, the two files that every op and header rests on."""

import re
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.reserved import free_name, taken_by_languages
from diopigen.model.runtime import CFunction, CParam, Enum, Enumerator, FunctionType, Runtime, Table, TableEntry
from diopigen.model.type import Value
from diopigen.passes.contract.ranges import range_of, value_holds
from diopigen.project import Project
from diopigen.source.cpp.declared import Element, check_elements
from diopigen.source.schema.runtime_surface import DTypesSurface, RuntimeSurface, TableSurface
from diopigen.source.yaml.nodes import Mapping, Node, plain, read_yaml, span_at
from diopigen.source.yaml.validate import fits
from diopigen.text import suggestion
from diopigen.vocabulary.dtype import DEFAULT, DType, DTypes, DTypeSet, Kind

_TABLES = ("device", "collectives")
_C = re.compile(r"(?P<returns>[\w ]+\**) \((?P<params>.*)\)")
_PARAM = re.compile(r"(?P<type>(?:const )?\w+ ?\**)(?: ?(?P<name>\w+))?")


def bind_dtypes(project: Project, diagnostics: Diagnostics) -> DTypes | None:
    """The element types and their sets, or None after diagnostics."""
    path = project.schemas / "dtypes.yaml"
    node = read_yaml(path, project.shown(path), diagnostics)
    if node is None or not fits(node, DTypesSurface, "dtypes.yaml", diagnostics):
        return None
    surface = DTypesSurface.model_validate(plain(node))
    types = tuple(
        DType(**{**dict(t), "name": name, "kind": Kind(t.kind), "also": tuple(t.also)})
        for name, t in surface.types.items()
    )
    for name, t in surface.types.items():
        lacking = "digits" if not t.digits else None if t.exponent else "exponent"
        if t.kind == Kind.FLOAT.value and lacking is not None:
            diagnostics.error(
                "missing-key", f"'{name}' has no '{lacking}'", span_at(node, "types", name), f"add '{lacking}:'"
            )
            return None
        if not _sound_name(f"diopi_dtype_{t.word}", span_at(node, "types", name, "word"), diagnostics):
            return None
    for kind, name in DEFAULT.items():
        if name not in surface.types:
            message = f"there is no '{name}', the {kind.value} that plain numbers become"
            diagnostics.error("missing-key", message, span_at(node, "types"), f"add '{name}:'")
            return None
    if not _distinct(surface, node, diagnostics):
        return None
    elements = [Element(dtype=t, span=span_at(node, "types", t.name, "cpp")) for t in types if t.cpp is not None]
    check_elements(elements, project.runtime / "kernels", project.cache, diagnostics)
    sets = []
    for name, members in surface.sets.items():
        for position, member in enumerate(members):
            if member not in surface.types:
                span = span_at(node, "sets", name, position)
                diagnostics.error(
                    "unknown-dtype", f"there is no dtype '{member}'", span, suggestion(member, surface.types)
                )
        if not members:
            span = span_at(node, "sets", name)
            diagnostics.error("empty", "an element type is missing here", span, "name dtypes, or remove the set")
        sets.append(DTypeSet(name=name, members=tuple(t for t in types if t.name in members)))
    return DTypes(types=types, sets=tuple(sets))


def _distinct(surface: DTypesSurface, node: Node, diagnostics: Diagnostics) -> bool:
    """Whether no two element types have the same value, name or type of C++ or torch; the first two are reported."""
    for key in ("value", "word", "cpp", "torch", "scalar_type"):
        owners: dict[object, str] = {}
        for name, row in surface.types.items():
            said = getattr(row, key)
            if said is not None and (owner := owners.setdefault(said, name)) != name:
                span = span_at(node, "types", name, key)
                hint = f"give each dtype a different {key}"
                diagnostics.error("duplicate-value", f"'{name}' has the {key} of '{owner}'", span, hint)
                return False
    return True


def bind_runtime(path: Path, shown: str, dtypes: DTypes, diagnostics: Diagnostics) -> Runtime | None:
    """The run-time side of the contract, or None after diagnostics."""
    node = read_yaml(path, shown, diagnostics)
    if node is None or not fits(node, RuntimeSurface, "runtime.yaml", diagnostics):
        return None
    surface = RuntimeSurface.model_validate(plain(node))
    if not _sound_names(surface, node, diagnostics) or not _sound_values(surface, node, dtypes, diagnostics):
        return None
    enums = tuple(
        Enum(
            name=name,
            doc=e.doc,
            enumerators=tuple(_dtype_enumerators(e.dtypes, dtypes))
            + tuple(Enumerator(name=n, value=int(v[0]), doc=str(v[1])) for n, v in e.values.items()),
            header=e.header,
            span=span_at(node, "enums", name),
        )
        for name, e in surface.enums.items()
    )
    function_types = []
    for name, t in surface.function_types.items():
        returns, params = _signature(t.c, span_at(node, "function_types", name, "c"), diagnostics)
        function_types.append(
            FunctionType(
                name=name, doc=t.doc, returns=returns, params=params, span=span_at(node, "function_types", name)
            )
        )
    functions = []
    for name, f in surface.functions.items():
        span = span_at(node, "functions", name, "c")
        returns, params = _signature(f.c, span, diagnostics)
        functions.append(
            CFunction(
                name=name,
                doc=f.doc,
                linkage=f.linkage,
                returns=returns,
                params=params,
                header=f.header,
                span=span_at(node, "functions", name),
            )
        )
    return Runtime(
        version=(surface.version[0], surface.version[1], surface.version[2]),
        enums=enums,
        functions=tuple(functions),
        function_types=tuple(function_types),
        tables=tuple(
            _table(name, getattr(surface, name), node, tuple(function_types), diagnostics) for name in _TABLES
        ),
        span=node.span,
    )


def _sound_names(surface: RuntimeSurface, node: Node, diagnostics: Diagnostics) -> bool:
    """Whether C and C++ take every name; what they do not take is reported."""
    named: list[tuple[tuple[str, ...], str]] = [(("enums", name), name) for name in surface.enums]
    named += [(("enums", name, "values", word), word) for name, e in surface.enums.items() for word in e.values]
    named += [(("function_types", name), name) for name in surface.function_types]
    named += [(("functions", name), name) for name in surface.functions]
    found = [_sound_name(name, _key(node, *path), diagnostics) for path, name in named]
    for table in _TABLES:
        for name in getattr(surface, table).entries:  # members of a struct
            found.append(_sound_name(name, _key(node, table, "entries", name), diagnostics, at_file_scope=False))
    return all(found)


def _sound_name(name: str, span: Span, diagnostics: Diagnostics, *, at_file_scope: bool = True) -> bool:
    reason = taken_by_languages(name, at_file_scope=at_file_scope)
    if not (name.isidentifier() and name.isascii()):
        diagnostics.error("bad-name", f"'{name}' is not a name", span, "use letters, digits and '_'")
    elif reason is not None:
        hint = f"use another name, for instance '{free_name(name, (name,))}'"
        diagnostics.error("reserved-name", f"'{name}' is {reason}", span, hint)
    else:
        return True
    return False


def _sound_values(surface: RuntimeSurface, node: Node, dtypes: DTypes, diagnostics: Diagnostics) -> bool:
    """Whether every enumerator has a whole number that an int of C holds, and a doc."""
    sound = True
    for name, enum in surface.enums.items():
        for word, (value, doc) in enum.values.items():
            if not isinstance(value, int) or not isinstance(doc, str):
                span = span_at(node, "enums", name, "values", word)
                diagnostics.error("wrong-kind", f"'{word}' needs a number and a string here", span)
                sound = False
            elif enum.dtypes is not None and value in (taken := {t.value: t.name for t in dtypes.types}):
                span = span_at(node, "enums", name, "values", word)
                message = f"'{word}' has the value of the dtype '{taken[value]}'"
                diagnostics.error("duplicate-value", message, span, "give each enumerator a different value")
                sound = False
            elif not value_holds(Value.INT32, value):
                span = span_at(node, "enums", name, "values", word)
                hint = range_of(Value.INT32)
                diagnostics.error("out-of-range", f"'{word}' is an int in C, which cannot be {value}", span, hint)
                sound = False
    return sound


def _table(
    table: str, surface: TableSurface, node: Node, types: tuple[FunctionType, ...], diagnostics: Diagnostics
) -> Table:
    docs = {t.name: t.doc for t in types}
    entries = []
    for name, entry in surface.entries.items():
        span = span_at(node, table, "entries", name)
        if entry.type is not None and entry.type not in docs:
            diagnostics.error(
                "unknown-type",
                f"there is no function type '{entry.type}'",
                span,
                suggestion(entry.type, docs),
            )
        returns, params = ("", ()) if entry.c is None else _signature(entry.c, span, diagnostics)
        entries.append(
            TableEntry(
                name=name,
                doc=entry.doc or docs.get(entry.type or "", ""),
                type=entry.type,
                returns=returns,
                params=params,
                required=entry.required,
                span=span,
            )
        )
    return Table(name=table, version=surface.version, entries=tuple(entries))


def _dtype_enumerators(prefix: str | None, dtypes: DTypes) -> list[Enumerator]:
    if prefix is None:
        return []
    return [Enumerator(name=prefix + t.word, value=t.value, doc=t.word) for t in dtypes.types]


def _signature(text: str, span: Span, diagnostics: Diagnostics) -> tuple[str, tuple[CParam, ...]]:
    """e.g. "int32_t (void* ptr)" as ("int32_t", (CParam(type="void*", name="ptr"),))."""
    match = _C.fullmatch(text)
    if match is None:
        diagnostics.error("syntax", f"'{text}' is not a C signature", span, "write 'int32_t (void* ptr)'")
        return "void", ()
    params = []
    for part in match["params"].split(","):
        param = _PARAM.fullmatch(part.strip())
        if part.strip() == "void":
            continue
        if param is None:
            diagnostics.error("syntax", f"'{part.strip()}' is not a C parameter", span, "write 'void* ptr'")
            continue
        params.append(CParam(type=param["type"].strip(), name=param["name"] or ""))
    return match["returns"].strip(), tuple(params)


def _key(node: Node, *path: str) -> Span:
    """The span of the key at `path`."""
    for part in path[:-1]:
        inner = node.get(part) if isinstance(node, Mapping) else None
        node = node if inner is None else inner
    entry = node.entry(path[-1]) if isinstance(node, Mapping) else None
    return node.span if entry is None else entry.key.span
