"""The Jinja environment of HTML reports: pages extend `frame.html.j2` and need no network, no other file, no server."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

FILES = Path(__file__).parent / "files"


def environment(*folders: Path) -> "jinja2.Environment":
    """For templates in `folders`, before those of the kit; what is rendered into `*.html.j2` is escaped."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, FILES]),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
