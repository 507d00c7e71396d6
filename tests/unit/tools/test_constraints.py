"""The packages of the environment by version and hash."""

import re
import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tools.constraints import BUILD, FOLDER, GROUPS, RELEASES, ROOT, Entry, canonical, entries, wanted

RESOLVED = """\
click==8.2.1 \\
    --hash=sha256:{one} \\
    --hash=sha256:{two}
    # via this project
Jinja2==3.1.6 \\
    --hash=sha256:{one}
    # via
    #   this project
    #   torch
markupsafe==3.0.4 \\
    --hash=sha256:{one}
    # via jinja2
nvidia-cublas==13.1.0.3 \\
    --hash=sha256:{one}
    # via
    #   cuda_toolkit
cuda-toolkit==13.0.2 \\
    --hash=sha256:{one}
    # via torch
torch==2.13.0 \\
    --hash=sha256:{one}
    # via this project
sympy==1.14.0 \\
    --hash=sha256:{two}
    # via torch
""".format(one="1" * 64, two="2" * 64)


def declared() -> Iterator[Requirement]:
    """What this checkout asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = (project["optional-dependencies"][group] for group in GROUPS)
    for text in (
        *project["dependencies"],
        *(line for group in groups for line in group),
        *BUILD,
    ):
        yield Requirement(text)


def test_entries_are_read_and_written() -> None:
    found = entries(RESOLVED)
    assert found["jinja2"] == Entry(name="jinja2", version="3.1.6", hashes=("1" * 64,), needed_by=("", "torch"))
    assert entries("".join(map(str, found.values()))) == found


@pytest.mark.parametrize(
    ("of_torch", "expected"),
    [
        (["jinja2", "sympy"], ["click", "jinja2", "markupsafe", "sympy"]),
        (["sympy", "cuda-toolkit"], ["click", "jinja2", "markupsafe", "nvidia-cublas", "cuda-toolkit", "sympy"]),
        (["no-such"], ["click", "jinja2", "markupsafe"]),
    ],
)
def test_what_the_torch_that_is_there_does_not_ask_for_is_left_out(of_torch: list[str], expected: list[str]) -> None:
    assert [entry.name for entry in wanted(entries(RESOLVED), of_torch)] == expected


@pytest.mark.parametrize("release", RELEASES)
def test_each_requirement_is_met(release: str) -> None:
    locked = entries((FOLDER / f"torch-{release}.txt").read_text(encoding="utf-8"))
    assert locked["torch"].version.startswith(f"{release}.")
    for requirement in declared():
        entry = locked[canonical(requirement.name)]
        assert requirement.specifier.contains(
            Version(entry.version)
        ), f"{requirement}, but {entry.name} {entry.version}"
        assert "" in entry.needed_by
    for entry in locked.values():
        assert entry.hashes and entry.needed_by, entry.name
        assert all(name == "" or name in locked for name in entry.needed_by), entry.name


def test_no_file_names_a_place() -> None:
    for path in FOLDER.iterdir():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"://|^-|\.in\b|/", text, flags=re.MULTILINE), path.name
