"""What compositions compute with on the host: numbers, lists, and the dtypes of temporaries."""

import subprocess
from itertools import product
from pathlib import Path

import pytest

from diopigen.diagnostics import Diagnostics
from diopigen.passes.contract.bind_runtime import bind_dtypes
from diopigen.passes.contract.elements import promote
from diopigen.project import Project
from diopigen.vocabulary.dtype import DType, DTypes

ROOT = Path(__file__).resolve().parents[2]

NUMBERS = """
    const diopiScalar_t two = {diopi_dtype_int64, {.ival = 2}};
    CHECK((Number(3) - Number(5)).integer() == -2 && (Number(3) - Number(5)).whole());
    CHECK((Number(&two) * Number(4)).scalar()->ival == 8);
    CHECK((Number(1) / Number(4)).real() == 0.25 && !(Number(4) / Number(2)).whole());
    CHECK((Number(1) + Number(0.5)).scalar()->fval == 1.5);
    CHECK(Number(true).integer() == 1 && (-Number(2.5)).real() == -2.5);
    CHECK(max(Number(2), Number(3)).integer() == 3 && min(Number(2), Number(-3)).integer() == -3);
    CHECK(Number(2) < Number(2.5) && Number(2) == Number(2.0) && abs(Number(-7)).integer() == 7);
    CHECK(Number(INT64_MAX).integer() == INT64_MAX);
"""

LISTS = """
    const int64_t stride[] = {3, 4};
    const Sizes joined = Steps::joined({1, diopiSize_t{stride, 2}});
    CHECK(joined.length() == 3 && joined[0] == 1 && joined[1] == 3 && joined.view().data[2] == 4);
    CHECK(Steps::last(joined)[0] == -3 && Steps::last(joined)[2] == -1);
    Sizes sizes = joined;
    sizes.insert(0, 9);
    sizes.erase(1);
    CHECK(sizes.length() == 3 && sizes[0] == 9 && sizes[1] == 3);
    CHECK(Sizes(static_cast<const int64_t*>(nullptr)).length() == 0);
    Sizes full;
    for (int i = 0; i < Sizes::kCapacity; ++i) full.append(i);
    CHECK(full.complete() && full.length() == Sizes::kCapacity);
    full.append(1);
    CHECK(!full.complete() && full.length() == Sizes::kCapacity);
"""


@pytest.fixture(scope="module")
def dtypes() -> DTypes:
    found = bind_dtypes(Project(root=ROOT), Diagnostics())
    assert found is not None
    return found


def run(folder: Path, body: str) -> None:
    """Compiles and runs `body`; a CHECK that does not hold ends it with its line."""
    source = folder / "check.cpp"
    source.write_text(f"""#include "composite/steps.h"

#include <cstdio>

#define CHECK(condition) \\
    if (!(condition)) return std::printf("%s\\n", #condition), 1
using namespace diopi::composite;

int main() {{{body}    return 0;
}}
""")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror"]
    include = ["-I", str(ROOT / "runtime_cpp"), "-I", str(ROOT / "generated" / "include")]
    program = folder / "check"
    undefined = ["-Wl,--unresolved-symbols=ignore-all"]  # the functions of diopirt.h, which nothing here calls
    command = ["g++", *flags, *include, str(source), "-o", str(program), *undefined]
    subprocess.run(command, check=True, timeout=120)
    ended = subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=20)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_numbers_stay_whole_until_they_are_divided(tmp_path: Path) -> None:
    run(tmp_path, NUMBERS)


def test_lists_are_joined_in_place_and_say_when_they_are_full(tmp_path: Path) -> None:
    run(tmp_path, LISTS)


def test_promotion_is_that_of_the_generator(tmp_path: Path, dtypes: DTypes) -> None:
    pairs = [pair for name in ("any", "complex") for pair in product(members(name, dtypes), repeat=2)]
    lines = []
    for a, b in pairs:
        found = promote(a, b, dtypes)
        assert isinstance(found, DType)
        words = [f"diopi_dtype_{t.word}" for t in (a, b, found)]
        lines.append(f"    CHECK(promote({words[0]}, {words[1]}) == {words[2]});\n")
    run(tmp_path, "\n" + "".join(lines))


def members(name: str, dtypes: DTypes) -> tuple[DType, ...]:
    found = dtypes.set_named(name)
    assert found is not None
    return found.members
