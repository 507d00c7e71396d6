"""What the package depends on: the release of torch that it is built with, and the generator's package."""

from importlib import metadata
from typing import Any


def dynamic_metadata(field: str, settings: dict[str, Any] | None = None) -> list[str]:
    """The dependencies, for scikit-build-core. Raises ValueError for another field."""
    if field != "dependencies":
        raise ValueError(f"'{field}' does not follow from torch")
    major, minor, *_ = metadata.version("torch").split(".")
    return [f"torch=={major}.{minor}.*", "diopigen", "numpy>=2.2"]
