"""One include guard and one spelling; clang-format itself has tests of its own."""

import subprocess
from pathlib import Path

from tools.cpp_format import sources, spelled

GUARDED = """// What it is.
#ifndef DIOPI_A_H_
#define DIOPI_A_H_

#ifndef DIOPI_HD
#define DIOPI_HD
#endif

std::uint32_t a(std::int64_t n);

#endif  // DIOPI_A_H_
"""


def test_a_guard_becomes_a_pragma_and_integers_lose_their_namespace() -> None:
    once = spelled(GUARDED)
    head, tail = "// What it is.\n#pragma once\n\n#ifndef DIOPI_HD\n", "#endif\n\nuint32_t a(int64_t n);\n"
    assert once.startswith(head) and once.endswith(tail)
    assert spelled(once) == once


def test_other_conditions_stay() -> None:
    text = "#ifndef DIOPI_HD\n#define DIOPI_HD\n#endif\n"
    assert spelled(text) == text


def test_what_git_does_not_know_yet_is_formatted_and_what_is_listed_is_not(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".clang-format-ignore").write_text("# written\ngenerated/*\n", encoding="utf-8")
    for name in ("a.cpp", "a.py", "generated/include/b.h", "c/d.cu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sources(tmp_path) == [tmp_path / "a.cpp", tmp_path / "c" / "d.cu"]
