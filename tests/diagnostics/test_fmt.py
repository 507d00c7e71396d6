"""What `diopigen fmt` says of a file that it must not touch: the exact text, and the file as it was."""

import shutil
from collections.abc import Callable
from pathlib import Path

from diopigen.commands.fmt import formatted
from diopigen.diagnostics import Diagnostics, render_human
from diopigen.project import Project

BAD = Path(__file__).parent / "fmt" / "unformatted.yaml"


def test_text(miniature: Callable[..., Project], golden: Callable[[Path, str], None]) -> None:
    project, diagnostics = miniature({}), Diagnostics()
    path = Path(shutil.copy(BAD, project.schemas / "ops" / BAD.name))
    assert formatted(project, path, diagnostics) is None
    assert path.read_bytes() == BAD.read_bytes()
    golden(BAD.with_suffix(".txt"), "\n".join(render_human(diagnostics, project.root)) + "\n")
