"""Runs the command line in this process, with every folder listed in another order than the disk gives.

Usage: drive.py (as-is | reversed) <arguments of diopigen>...
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def reverse(listing: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """The entries that `listing` gives, sorted backwards."""

    def reversed_listing(*args: Any, **kwargs: Any) -> Iterator[Any]:
        return iter(sorted(listing(*args, **kwargs), key=str, reverse=True))

    return reversed_listing


def reverse_walk(walk: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """`os.walk` with the folders and files of each step backwards; a caller may still choose among the folders."""

    def walk_backwards(*args: Any, **kwargs: Any) -> Iterator[Any]:
        for path, folders, files in walk(*args, **kwargs):
            folders.sort(reverse=True)
            yield path, folders, sorted(files, reverse=True)

    return walk_backwards


def main() -> None:
    order = sys.argv.pop(1)
    if order == "reversed":
        for name in ("glob", "rglob", "iterdir"):
            setattr(Path, name, reverse(getattr(Path, name)))
        os.walk = reverse_walk(os.walk)  # type: ignore[assignment]
        os.listdir = lambda *args: sorted(_listdir(*args), reverse=True)  # type: ignore[assignment]
    from diopigen.cli import main as diopigen

    sys.argv[0] = "diopigen"
    diopigen()


_listdir = os.listdir

if __name__ == "__main__":
    main()
