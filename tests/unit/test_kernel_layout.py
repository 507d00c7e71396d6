"""Where the portable kernels lie: few files in a folder, and in shared folders only what several families include."""

from pathlib import Path

import pytest

from tools.kernel_calls import included

KERNELS = Path(__file__).resolve().parents[2] / "runtime_cpp" / "kernels"
FILES = sorted(path for path in KERNELS.rglob("*") if path.suffix in (".h", ".cpp"))
FAMILIES = {path.parent.name for path in FILES if "namespace impl::portable" in path.read_text(encoding="utf-8")}
SHARED = [path for path in FILES if path.suffix == ".h" and path.parent.name not in {*FAMILIES, "launch"}]


INCLUDED = {path: set(included(path, KERNELS)) for path in FILES}


def users(header: Path) -> set[str]:
    """The other folders that include a header, or one of its folder that itself or whose source does."""
    direct = [path for path in FILES if header in INCLUDED[path]]
    own = {path.with_suffix(".h") for path in direct if path.parent == header.parent} - {header}
    return {path.parent.name for path in direct if path.parent != header.parent}.union(*map(users, own))


def test_every_file_lies_in_a_folder_of_a_few() -> None:
    folders = [path.parent for path in FILES]
    assert {path.parent for path in folders} == {KERNELS}
    assert {folder.name: folders.count(folder) for folder in folders if folders.count(folder) > 16} == {}


@pytest.mark.parametrize("header", SHARED, ids=lambda path: path.relative_to(KERNELS).as_posix())
def test_a_shared_header_serves_several_families(header: Path) -> None:
    assert len(users(header)) > 1
