"""The documentation site of this checkout, as `make docs` builds it."""

import os
import subprocess
import sys
from pathlib import Path

from diopigen.commands.docs import write_docs
from diopigen.project import Project


def built_site(checkout: Project, folder: Path) -> Path:
    """The folder of the site, made in `folder`."""
    assert write_docs(checkout, folder / "docs", "human") == 0
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict"]
    command += ["-f", str(folder / "docs" / "mkdocs.yml")]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    build = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (build.returncode, build.stdout + build.stderr) == (0, "")
    return folder / "site"
