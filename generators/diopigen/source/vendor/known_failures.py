"""Whether a vendor's known_failures.yaml has the shape that the conformance suite reads."""

from pathlib import Path

from diopigen.diagnostics import Diagnostics
from diopigen.records.known_failures import KnownFailure
from diopigen.source.yaml.nodes import Mapping, Sequence, read_yaml
from diopigen.source.yaml.validate import fits


def check_known_failures(path: Path, shown: str, diagnostics: Diagnostics) -> None:
    """Reports what is wrong with its entries, if there is such a file; whether there are such cases the suite says."""
    if not path.exists():
        return
    node = read_yaml(path, shown, diagnostics)
    if isinstance(node, Sequence):
        for entry in node.items:
            fits(entry, KnownFailure, "an entry", diagnostics)
    elif node is not None and node != Mapping(entries=(), span=node.span):
        diagnostics.error("wrong-kind", f"{path.name} is a list of entries", node.span, "write - id: add/f32/0")
