"""Holds YAML nodes against a pydantic surface and says what does not fit, at its place."""

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from diopigen.diagnostics import Diagnostics, Span
from diopigen.source.yaml.nodes import Leaf, Mapping, Node, Sequence, plain
from diopigen.text import listing, nearest, suggestion

_MOST = 100  # mistakes of one entry that are told; more come of a file that is no schema


def fits(node: Node, surface: type[BaseModel], owner: str, diagnostics: Diagnostics) -> bool:
    """Whether `node` has the surface's shape; what does not fit is reported. `owner` names it in messages."""
    try:
        surface.model_validate(plain(node))
    except ValidationError as error:
        details = error.errors(include_url=False)
        meant = {near for d in details if d["type"] == "extra_forbidden" and (near := _meant(surface, d["loc"]))}
        details = [d for d in details if d["type"] != "missing" or d["loc"] not in meant]
        for detail in details[:_MOST]:
            _report(node, surface, owner, detail, diagnostics)
        if len(details) > _MOST:
            diagnostics.error("too-many", f"'{owner}' has {len(details) - _MOST} more mistakes like these", node.span)
        return False
    return True


def _meant(surface: type[BaseModel], loc: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Where the key is that the unknown one at `loc` was probably to be."""
    near = nearest(str(loc[-1]), _known(surface, loc))
    return None if near is None else (*loc[:-1], near)


def _report(node: Node, surface: type[BaseModel], owner: str, detail: Any, diagnostics: Diagnostics) -> None:
    place, key, holder = _locate(node, detail["loc"])
    kind, context = detail["type"], detail.get("ctx", {})
    name = str(detail["loc"][-1]) if detail["loc"] else owner
    if kind == "extra_forbidden":
        hint = suggestion(name, _known(surface, detail["loc"])) or (
            "the properties are " + ", ".join(_known(surface, detail["loc"]))
        )
        diagnostics.error("unknown-key", f"'{holder or owner}' has no property '{name}'", key, hint)
    elif kind == "missing":
        diagnostics.error("missing-key", f"'{holder or owner}' has no '{name}'", place, f"add '{name}:'")
    elif kind == "literal_error":
        text = _text(node, detail["loc"])
        known = [word.strip().strip("'") for word in context["expected"].replace(" or ", ", ").split(",")]
        on_key = detail["loc"][-1] == "[key]"
        hint = suggestion(text, known) or f"expected {listing(known)}"
        diagnostics.error("unknown-word", f"'{text}' is not known here", key if on_key else place, hint)
    elif kind == "string_pattern_mismatch":
        on_key = detail["loc"][-1] == "[key]"
        text = str(detail["loc"][-2]) if on_key else _text(node, detail["loc"])
        diagnostics.error(
            "bad-name", f"'{text}' is not a name", key if on_key else place, "use letters, digits and '_'"
        )
    else:
        diagnostics.error(
            "wrong-kind", f"'{_text_key(detail['loc'], node) or owner}' needs {_expected(kind)} here", place
        )


_EXPECTED = {
    "string_type": "text",
    "string_too_short": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "date_type": "a date such as 2027-03-31",
    "date_from_datetime_parsing": "a date such as 2027-03-31",
    "bool_type": "true or false",
    "int_type": "a number",
    "float_type": "a number",
    "greater_than_equal": "a larger number",
    "less_than_equal": "a smaller number",
    "too_short": "at least one entry",
    "union_tag_invalid": "another kind of value",
    "union_tag_not_found": "another kind of value",
}


def _expected(kind: str) -> str:
    return _EXPECTED.get(kind, "another kind of value")


def _locate(node: Node, loc: tuple[Any, ...]) -> tuple[Span, Span, str | None]:
    """The span of the value at `loc`, the span of its key, and the name of the entry that holds it.

    Parts of `loc` that are no key of ours (union tags) are passed over.
    """
    key_span, holder = node.span, None
    path: list[str] = []
    for part in loc:
        if isinstance(node, Mapping):
            entry = node.entry(str(part))
            if entry is None:
                continue
            holder = path[-1] if path else None
            path.append(str(part))
            node, key_span = entry.value, entry.key.span
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            key_span = node.span
    missing = bool(loc) and (not path or path[-1] != str(loc[-1]))
    if missing:
        return key_span, key_span, path[-1] if path else None
    return node.span, key_span, holder


def _text_key(loc: tuple[Any, ...], node: Node) -> str | None:
    """The last key of the file that `loc` goes through."""
    last = None
    for part in loc:
        if isinstance(node, Mapping):
            entry = node.entry(str(part))
            if entry is not None:
                last, node = entry.key.text, entry.value
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
    return last


def _text(node: Node, loc: tuple[Any, ...]) -> str:
    if loc and loc[-1] == "[key]":
        return str(loc[-2])
    for part in loc:
        if isinstance(node, Mapping):
            node = node.get(str(part)) or node
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
    return node.text if isinstance(node, Leaf) else ""


def _known(surface: type[BaseModel], loc: Iterable[Any]) -> list[str]:
    """The properties of the innermost model that `loc` reaches."""
    model = surface
    for part in loc:
        inner = _models(model, str(part))
        if inner is not None:
            model = inner
    return list(model.model_fields)


def _models(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    field = model.model_fields.get(name)
    pending: list[Any] = [] if field is None else [field.annotation]
    while pending:
        annotation = pending.pop()
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return annotation
        pending.extend(getattr(annotation, "__args__", ()))
    return None
