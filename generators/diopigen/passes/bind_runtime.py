"""Reads dtypes.yaml and runtime.yaml, the two files that every op and header rests on."""

import re
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.dtype import DType, DTypes, DTypeSet, Kind
from diopigen.model.runtime import CFunction, CParam, DeviceEntry, Enum, Enumerator, FunctionType, Runtime
from diopigen.source.runtime_surface import DTypesSurface, RuntimeSurface
from diopigen.source.validate import fits
from diopigen.source.yaml_nodes import Leaf, Mapping, Node, Sequence, plain, read_yaml
from diopigen.text import suggestion

_C = re.compile(r"(?P<returns>[\w ]+\**) \((?P<params>.*)\)")
_PARAM = re.compile(r"(?P<type>(?:const )?\w+ ?\**)(?: ?(?P<name>\w+))?")


def bind_dtypes(path: Path, shown: str, diagnostics: Diagnostics) -> DTypes | None:
    """The element types and their sets, or None after diagnostics."""
    node = read_yaml(path, shown, diagnostics)
    if node is None or not fits(node, DTypesSurface, "dtypes.yaml", diagnostics):
        return None
    surface = DTypesSurface.model_validate(plain(node))
    types = tuple(
        DType(name=name, word=t.word, value=t.value, size=t.size, kind=Kind(t.kind), torch=t.torch)
        for name, t in surface.types.items()
    )
    sets = []
    for name, members in surface.sets.items():
        for position, member in enumerate(members):
            if member not in surface.types:
                span = _at(node, "sets", name, position)
                diagnostics.error(
                    "unknown-dtype", f"there is no dtype '{member}'", span, suggestion(member, surface.types)
                )
        sets.append(DTypeSet(name=name, members=tuple(t for t in types if t.name in members)))
    return DTypes(types=types, sets=tuple(sets))


def bind_runtime(path: Path, shown: str, dtypes: DTypes, diagnostics: Diagnostics) -> Runtime | None:
    """The run-time side of the contract, or None after diagnostics."""
    node = read_yaml(path, shown, diagnostics)
    if node is None or not fits(node, RuntimeSurface, "runtime.yaml", diagnostics):
        return None
    surface = RuntimeSurface.model_validate(plain(node))
    enums = tuple(
        Enum(
            name=name,
            doc=e.doc,
            enumerators=tuple(_dtype_enumerators(e.dtypes, dtypes))
            + tuple(Enumerator(name=n, value=int(v[0]), doc=str(v[1])) for n, v in e.values.items()),
            span=_at(node, "enums", name),
        )
        for name, e in surface.enums.items()
    )
    function_types = []
    for name, t in surface.function_types.items():
        returns, params = _signature(t.c, _at(node, "function_types", name, "c"), diagnostics)
        function_types.append(
            FunctionType(name=name, doc=t.doc, returns=returns, params=params, span=_at(node, "function_types", name))
        )
    functions = []
    for name, f in surface.functions.items():
        span = _at(node, "functions", name, "c")
        returns, params = _signature(f.c, span, diagnostics)
        functions.append(
            CFunction(
                name=name,
                doc=f.doc,
                linkage=f.linkage,
                returns=returns,
                params=params,
                header=f.header,
                span=_at(node, "functions", name),
            )
        )
    return Runtime(
        version=(surface.version[0], surface.version[1], surface.version[2]),
        enums=enums,
        functions=tuple(functions),
        function_types=tuple(function_types),
        device_version=surface.device.version,
        device_entries=_device_entries(surface, node, tuple(function_types), diagnostics),
        span=node.span,
    )


def _device_entries(
    surface: RuntimeSurface, node: Node, types: tuple[FunctionType, ...], diagnostics: Diagnostics
) -> tuple[DeviceEntry, ...]:
    docs = {t.name: t.doc for t in types}
    entries = []
    for name, entry in surface.device.entries.items():
        span = _at(node, "device", "entries", name)
        if entry.type is not None and entry.type not in docs:
            diagnostics.error(
                "unknown-type",
                f"there is no function type '{entry.type}'",
                span,
                suggestion(entry.type, docs),
            )
        returns, params = ("", ()) if entry.c is None else _signature(entry.c, span, diagnostics)
        entries.append(
            DeviceEntry(
                name=name,
                doc=entry.doc or docs.get(entry.type or "", ""),
                type=entry.type,
                returns=returns,
                params=params,
                required=entry.required,
                span=_at(node, "device", "entries", name),
            )
        )
    return tuple(entries)


def _dtype_enumerators(prefix: str | None, dtypes: DTypes) -> list[Enumerator]:
    if prefix is None:
        return []
    return [Enumerator(name=prefix + t.word, value=t.value, doc=t.word) for t in dtypes.types]


def _signature(text: str, span: Span, diagnostics: Diagnostics) -> tuple[str, tuple[CParam, ...]]:
    """ex) "int32_t (void* ptr)" as ("int32_t", (CParam(type="void*", name="ptr"),))."""
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


def _at(node: Node, *path: str | int) -> Span:
    """The span of the key or item at `path`."""
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
