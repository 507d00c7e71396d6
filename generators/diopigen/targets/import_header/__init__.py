"""Entries of schemas/ops for what a header declares and no schema gives."""

from diopigen.targets.import_header.view import entries

__all__ = ["entries"]
