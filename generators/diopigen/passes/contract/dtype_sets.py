"""The element types that a `where:` line allows."""

from diopigen.diagnostics import Diagnostics
from diopigen.source.yaml.nodes import Leaf, Mapping, Node, Sequence
from diopigen.text import suggestion
from diopigen.vocabulary.dtype import DType, DTypes, DTypeSet


def dtype_sets(node: Node | None, dtypes: DTypes, diagnostics: Diagnostics) -> tuple[tuple[str, DTypeSet], ...]:
    """By variable: the set of its dtypes. Unknown ones are reported."""
    entries = node.entries if isinstance(node, Mapping) else ()
    return tuple((entry.key.text, _dtype_set(entry.value, dtypes, diagnostics)) for entry in entries)


def _dtype_set(node: Node, dtypes: DTypes, diagnostics: Diagnostics) -> DTypeSet:
    items = node.items if isinstance(node, Sequence) else (node,)
    leaves = [item for item in items if isinstance(item, Leaf)]
    members: list[DType] = []
    for leaf in leaves:
        named, dtype = dtypes.set_named(leaf.text), dtypes.named(leaf.text)
        if named is None and dtype is None:
            known = [s.name for s in dtypes.sets] + [t.name for t in dtypes.types]
            diagnostics.error(
                "unknown-dtype",
                f"there is no dtype or set of dtypes '{leaf.text}'",
                leaf.span,
                suggestion(leaf.text, known) or _listed(leaf.text) or "dtypes.yaml lists them",
            )
        elif named is not None:
            members.extend(named.members)
        elif dtype is not None:
            members.append(dtype)
    if not leaves:
        diagnostics.error("empty", "an element type is missing here", node.span, "name dtypes or a set of them")
    unique = tuple(t for t in dtypes.types if t in members)
    return DTypeSet(name=" | ".join(leaf.text for leaf in leaves), members=unique)


def _listed(text: str) -> str | None:
    return f"write [{', '.join(part.strip() for part in text.split('|'))}] for several" if "|" in text else None
