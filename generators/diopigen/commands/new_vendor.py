"""Makes the folder of a new vendor: one that builds and trains on the host, with no operator of its own."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from diopigen.atomic import whole_folder, write_text
from diopigen.boundary import UNUSABLE
from diopigen.project import Project
from diopigen.targets.output import renderer
from diopigen.text import pascal

# The name becomes a C++ namespace, a folder of generated/ and of build/, and a part of a macro.
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TAKEN = {
    "docs": "generated/docs holds the documentation",
    "include": "generated/include holds the headers",
    "portable": "the kernels that serve every vendor are called so",
}
_CPP_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class co_await co_return co_yield compl
concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else
enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof
static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename union
unsigned using virtual void volatile wchar_t while xor xor_eq
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorFolder:
    """What the templates of a new vendor's files are filled with."""

    name: str  # e.g. "big_chip"
    title: str  # e.g. "BigChip"


def refusal(project: Project, name: str) -> str | None:
    """Why no vendor can be called `name`, with what to do instead; None if one can."""
    words = _CPP_WORDS.split()
    if not _NAME.fullmatch(name):
        near = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower()
        proposal = f"; '{near}' would do" if _NAME.fullmatch(near) and near not in words else ""
        return f"'{name}' is no name for a vendor: lower case, digits and '_', a letter first{proposal}"
    if name in words:
        return f"'{name}' is a word of C++ and cannot name a namespace; '{name}_chip' would do"
    if name in _TAKEN:
        return f"'{name}' is taken: {_TAKEN[name]}; choose another name"
    folder = project.vendors / name
    if folder.exists() or folder.is_symlink():
        return f"{project.shown(project.vendors)}/{name} is there already, and stays as it is; choose another name"
    return None


def new_vendor(project: Project, name: str) -> int:
    """Writes vendors/<name>, whole or not at all, and says what comes next; the exit code."""
    reason = refusal(project, name)
    if reason is not None:
        print(reason, file=sys.stderr)
        return UNUSABLE
    view = VendorFolder(name=name, title=pascal(name))
    shown = f"{project.shown(project.vendors)}/{name}"
    files = vendor_files(project.templates, view)
    with whole_folder(project.vendors / name) as folder:
        for path, text in files:
            write_text(folder / path, text)
    for path, _ in files:
        print(f"{shown}/{path}")
    print(f"\nnext: make build IMPL={name}, then DIPU_VENDOR={name} .venv/bin/python {shown}/train.py")
    print(f"after that {shown}/README.md says what to do, step by step")
    return 0


def vendor_files(templates: Path, view: VendorFolder) -> list[tuple[str, str]]:
    """Every file of the folder, e.g. ("device.cpp", "// The nine functions ..."), in alphabetical order."""
    render = renderer(templates)
    sources = sorted((templates / "new_vendor").glob("*.j2"))
    return [(source.name.removesuffix(".j2"), render(f"new_vendor/{source.name}", view)) for source in sources]
