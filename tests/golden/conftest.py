"""The miniature: a small project of its own whose outputs stand in expected/."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from diopigen.commands.generate import Request, generate
from diopigen.emit.outputs import VENDOR_TARGETS
from diopigen.project import Project

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
EXPECTED = HERE / "expected"
VENDORS = ("chip", "card", "mirror")

# What only copies a checked-in ground file or holds hashes of the others; each has tests of its own.
_LEFT_OUT = (
    "MANIFEST.json",
    ".depfile",
    ".fresh.json",
    ".last.kept",
    ".stamp",
    "diopirt.h",
    "diopirt_ext.h",
    "device.h",
    "diopi_register.h",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Miniature:
    """The project and what was written for it."""

    project: Project
    exit_codes: Mapping[str, int]  # by vendor

    def texts(self) -> dict[str, str]:
        """Every output that has a golden, by its path under generated/."""
        files = sorted(path for path in self.project.generated.rglob("*") if path.is_file())
        return {
            _unversioned(path.relative_to(self.project.generated)): path.read_text(encoding="utf-8")
            for path in files
            if path.name not in _LEFT_OUT
        }


def _unversioned(path: Path) -> str:
    """`path` without the version of torch, e.g. torch_dipu/aten/registration.cpp."""
    first, *rest = path.parts
    return Path("torch_dipu" if first.startswith("torch_dipu-") else first, *rest).as_posix()


def lay_out(root: Path) -> Project:
    """The miniature in `root`, with the real dtypes, run-time header, templates and shape rules."""
    shutil.copytree(HERE / "project", root)
    for name in ("dtypes.yaml", "runtime.yaml"):
        shutil.copy(ROOT / "schemas" / name, root / "schemas" / name)
    for name in ("templates", "generators", "runtime_cpp/torch", "runtime_cpp/adaptor", "runtime_cpp/kernels/core"):
        (root / name).symlink_to(ROOT / name)
    return Project(root=root)


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Miniature:
    """The miniature, generated for each vendor."""
    project = lay_out(tmp_path_factory.mktemp("miniature") / "project")
    header = Request(contract=True, targets=(), vendor=None, error_format="github")
    codes = {"header": generate(project, header)}
    for vendor in VENDORS:
        targets = tuple(VENDOR_TARGETS)
        request = Request(contract=True, wrappers=True, targets=targets, vendor=vendor, error_format="github")
        codes[vendor] = generate(project, request)
    return Miniature(project=project, exit_codes=codes)
