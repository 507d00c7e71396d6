"""The rule that torch has the element types that dtypes.yaml says it has."""

from collections.abc import Collection

from diopigen.diagnostics import Diagnostics
from diopigen.project import Project
from diopigen.source.yaml.nodes import span_of
from diopigen.text import suggestion
from diopigen.vocabulary.dtype import DTypes


def check_torch_dtypes(
    dtypes: DTypes, scalar_types: Collection[str], project: Project, diagnostics: Diagnostics
) -> None:
    """Reports each `scalar_type` that is none of the installed torch's."""
    for dtype in dtypes.types:
        if dtype.scalar_type is not None and dtype.scalar_type not in scalar_types:
            path = project.schemas / "dtypes.yaml"
            span = span_of(path, project.shown(path), "types", dtype.name, "scalar_type")
            message = f"c10::ScalarType has no '{dtype.scalar_type}'"
            diagnostics.error("not-in-torch", message, span, suggestion(dtype.scalar_type, scalar_types))
