"""The documentation site: its pages, and the configuration that mkdocs builds them with."""

from diopigen.commands.docs.site import write_docs

__all__ = ["write_docs"]
