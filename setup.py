"""Puts what the generator reads beside its modules: schemas, templates, run time and vendors, as diopigen/share."""

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SHARED = ("schemas", "templates", "runtime_cpp", "vendors", "CMakeLists.txt", "docs/diagnostics.yaml")


class WithShare(build_py):
    """A checkout finds these files where they are; an installed package has copies of its own."""

    def run(self) -> None:
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)  # what an earlier build left is not of this one
        super().run()
        if not self.editable_mode:
            for source, copy in self._shared():
                self.mkpath(str(copy.parent))
                self.copy_file(str(source), str(copy))

    def _shared(self) -> list[tuple[Path, Path]]:
        share = Path(self.build_lib) / "diopigen" / "share"
        tops = [ROOT / name for name in SHARED]
        files = (path for top in tops for path in ([top] if top.is_file() else top.rglob("*")))
        sources = (path for path in sorted(files) if path.is_file() and "__pycache__" not in path.parts)
        return [(path, share / path.relative_to(ROOT)) for path in sources]


# The packages and CMake have one version.
VERSION = re.search(
    r"^project\(diopi VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.MULTILINE
)[1]
setup(version=VERSION, cmdclass={"build_py": WithShare})
