"""Writes the table of docs/versions.md from the files that decide: `python -m tools.versions_doc`; --check compares."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.compile.test_headers import STANDARDS
from tools.marked_part import MarkedPart
from tools.matrix import RELEASES

ROOT = Path(__file__).resolve().parent.parent
PART = MarkedPart(ROOT / "docs" / "versions.md", "versions", "versions_doc")


def main() -> int:
    """The exit code is 1 where --check finds another table than it would write."""
    return PART.main(__doc__, "\n".join(listed()) + "\n")


def listed() -> Iterator[str]:
    """The table; what runs were recorded with comes from benchmarks/results."""
    project = tomllib.loads(_text("pyproject.toml"))["project"]
    chosen = _found("Makefile", r"TORCH [?]= (.+)")
    cmake = _found("CMakeLists.txt", r"cmake_minimum_required\(VERSION ([\d.]+?)\.\.\.")
    library = _found("runtime_cpp/cmake/DiopiToolchain.cmake", r"set\(CMAKE_CXX_STANDARD (\d+)\)")
    backend = _found("runtime_cpp/torch/CMakeLists.txt", r"cxx_std_(\d+)")
    standards = (name.replace("c", "C") for _, name in STANDARDS)
    packages = (name.removeprefix("nvidia-") for name in project["optional-dependencies"]["cuda"])
    yield "| | supported | in the recorded benchmarks |"
    yield "|---|---|---|"
    yield f"| torch | {', '.join(RELEASES)}; `make setup` chooses {chosen} | {_recorded('torch')} |"
    yield f"| Python | {project['requires-python'].removeprefix('>=')} and later | {_recorded('python')} |"
    yield f"| CMake | {cmake} and later | |"
    which = f"C++{library} for a vendor's library, C++{backend} for the PyTorch backend"
    yield f"| C++ compiler | {which} | {_recorded('compiler')} |"
    yield f"| processor | x86-64 | {_recorded('architecture')} |"
    yield f"| NVIDIA's libraries, for the vendor `cuda` | {', '.join(f'`{name}`' for name in packages)} | |"
    yield f"| programs that include the contract's headers | {', '.join(standards)}, with gcc and clang | |"


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _found(path: str, pattern: str) -> str:
    match = re.search(pattern, _text(path))
    assert match is not None, f"{path} has no {pattern}"
    return match[1]


def _recorded(fact: str) -> str:
    """What the benchmarks' results say they ran with, e.g. "3.11.7, 3.12.3"."""
    results = (
        json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "benchmarks" / "results").glob("*.json")
    )
    return ", ".join(sorted({word for result in results for word in result["facts"][fact].split(", ")}))


if __name__ == "__main__":
    sys.exit(main())
