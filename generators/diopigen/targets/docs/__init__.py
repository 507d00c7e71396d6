"""The documentation site: a page for each operator, topic, vendor and guide."""

from diopigen.targets.docs.outputs import outputs
from diopigen.targets.docs.site import Site

__all__ = ["Site", "outputs"]
