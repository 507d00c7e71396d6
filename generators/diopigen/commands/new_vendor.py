"""Makes the folder of a new vendor: one that builds and trains on the host, with no operator of its own."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from diopigen.atomic import whole_folder, write_text
from diopigen.boundary import UNUSABLE
from diopigen.project import Project
from diopigen.targets.output import renderer
from diopigen.text import listing, pascal
from diopigen.verbosity import tell

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
    own: bool = False  # it is a repository of its own

    @property
    def schemas(self) -> str:
        """The folder of the editors' schemas, from the vendor's."""
        return "generated" if self.own else "../../schemas"


def refusal(name: str) -> str | None:
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
    return None


def new_vendor(project: Project, name: str) -> int:
    """Writes vendors/<name>, whole or not at all, and says what comes next; the exit code."""
    place, shown = project.vendors / name, f"{project.shown(project.vendors)}/{name}"
    reason = refusal(name)
    if reason is None and (place.exists() or place.is_symlink()):
        reason = f"{shown} is there already, and stays as it is; choose another name"
    if reason is not None:
        print(reason, file=sys.stderr)
        return UNUSABLE
    view = VendorFolder(name=name, title=pascal(name))
    files = vendor_files(project.templates, view)
    with whole_folder(place) as folder:
        for path, text in files:
            write_text(folder / path, text)
    for path, _ in files:
        print(f"{shown}/{path}")
    tell(f"\nnext: make build IMPL={name}, then DIPU_VENDOR={name} .venv/bin/python {shown}/train.py")
    tell(f"after that {shown}/README.md says what to do, step by step")
    return 0


def new_repository(package: Path, name: str, folder: Path) -> int:
    """Writes a repository of the vendor's own into a folder that has none of its files; the exit code.

    `package` is the folder of the installed templates.
    """
    files = vendor_files(package / "templates", VendorFolder(name=name, title=pascal(name), own=True))
    reason = refusal(name)
    there = [path for path, text in files if _differs(folder / path, text)]
    if reason is None and there:
        reason = f"{folder} has {listing(there)} already, and stays as it is; name a new folder"
    if reason is not None:
        print(reason, file=sys.stderr)
        return UNUSABLE
    for path, text in files:  # what a run that was stopped has written is written again
        write_text(folder / path, text)
        print(folder / path)
    tell(f"\nnext, in {folder}:")
    tell("  cmake -S . -B build && cmake --build build")
    tell("  DIPU_VENDOR_LIBRARY=build/lib/libdiopi_impl.so python train.py")
    tell("after that README.md says what to do, step by step")
    return 0


def _differs(path: Path, text: str) -> bool:
    try:
        return path.read_text(encoding="utf-8") != text
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True


def vendor_files(templates: Path, view: VendorFolder) -> list[tuple[str, str]]:
    """Every file of the folder, e.g. ("device.cpp", "// The nine functions ..."), in alphabetical order.

    A repository has some of its own in place of those of a folder of vendors/.
    """
    render = renderer(templates)
    found: dict[str, str] = {}
    for kind in ("new_vendor", *(("new_repository",) if view.own else ())):
        for source in (templates / kind).rglob("*.j2"):
            path = source.relative_to(templates / kind).as_posix().removesuffix(".j2")
            found[path.replace("dot_", ".").replace("NAME", view.name)] = (
                f"{kind}/{source.relative_to(templates / kind).as_posix()}"
            )
    return [(path, render(found[path], view)) for path in sorted(found)]
