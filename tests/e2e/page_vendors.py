"""The vendors that docs/adding-a-vendor.md spells out, as projects of their own."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from diopigen.project import Project

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-a-vendor.md"
LINKED = ("schemas", "templates", "runtime_cpp", "generators", "CMakeLists.txt")
_FILE = re.compile(r"```\w+\n(?:#|//) vendors/([\w./]+)[^\n]*\n(.*?)```", re.DOTALL)


def page_files(vendor: str) -> dict[str, str]:
    """The files of the page that lie in the vendor's folder, by their paths there."""
    found = dict(_FILE.findall(PAGE.read_text(encoding="utf-8")))
    return {path.removeprefix(f"{vendor}/"): text for path, text in found.items() if path.startswith(f"{vendor}/")}


def page_project(root: Path, vendor: str) -> Project:
    """A checkout at `root` in which this is the only vendor, with the files that the page shows."""
    for name in LINKED:
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "generated" / "include", root / "generated" / "include")
    for path, text in page_files(vendor).items():
        file = root / "vendors" / vendor / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return Project(root=root)


def diopigen(project: Project, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the generator over the project."""
    command = [sys.executable, "-m", "diopigen", "--project", str(project.root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)
