"""Programs that tests run in a process of their own, with this checkout's packages and the built libraries of dipu."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.warm_python import Warm, reads_early

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = tuple(
    ROOT / name for name in ("python/torch_dipu", "python/op_tools", "python/dicp", "conformance", "generators")
)

sys.path.insert(0, str(PACKAGES[0]))
# Of several builds the one that was made last would be taken; the tests are about droplet unless another is named.
os.environ.setdefault("DIPU_VENDOR", "droplet")


def built_folder() -> Path | None:
    """Where the libraries of the PyTorch backend lie; None where they are not built."""
    from torch_dipu._library_path import library_dir

    try:
        return library_dir()
    except ImportError:
        return None


def run_python(
    *words: str, folder: Path | None = None, timeout: float = 300, **variables: str
) -> subprocess.CompletedProcess[str]:
    """What `python WORDS...` printed, in `folder`, with more environment variables; seconds at most."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def run_warm(
    *words: str, folder: Path | None = None, timeout: float = 300, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The same of a program that imports torch without its backends, in the fork of a process that has done so."""
    if reads_early(variables):
        return run_python(*words, folder=folder, timeout=timeout, **variables)
    return _warm().run(words, folder, timeout, _environment() | variables)


@functools.cache
def _warm() -> Warm:
    return Warm(os.environ | _environment())


def _environment() -> dict[str, str]:
    paths = [*map(str, PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    libraries = built_folder()
    return {"PYTHONPATH": os.pathsep.join(paths)} | ({"DIPU_LIBRARY_DIR": str(libraries)} if libraries else {})


@functools.cache
def torch_folders() -> tuple[list[str], list[str]]:
    """The folders of torch's headers and of its libraries.

    Asked of a process of its own: what knows them imports setuptools, which fails where distutils was imported before.
    """
    program = """
import json
from torch.utils import cpp_extension
print(json.dumps([cpp_extension.include_paths(), cpp_extension.library_paths()]))
"""
    done = run_python("-c", program, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.returncode == 0, done.stderr
    headers, libraries = json.loads(done.stdout)
    return headers, libraries
