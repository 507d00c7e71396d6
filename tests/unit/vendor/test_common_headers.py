"""Which headers are read once for several sources: never one that a source does not include itself."""

from pathlib import Path

import pytest

from diopigen.source.cpp.common_headers import common_headers

LARGE, SMALL = "// words\n" * 1000, "// words\n" * 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "large.h": LARGE,
        "small.h": SMALL,
        "behind.h": '#ifndef G\n#include "large.h"\n#endif\n',
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def chosen(folder: Path, *texts: str) -> list[list[str]]:
    """For sources with these lines the names of the headers that are read beforehand."""
    files = []
    for number, text in enumerate(texts):
        files.append(folder / "sources" / f"{number}.cpp")
        files[-1].parent.mkdir(exist_ok=True)
        files[-1].write_text(text, encoding="utf-8")
    found = common_headers(files, [folder])
    return [[Path(header.strip('<>"')).name for header in found[file]] for file in files]


def test_four_sources_are_worth_it(folder: Path) -> None:
    line = '#include "large.h"\n'
    assert chosen(folder, *[line] * 3) == [[]] * 3
    assert chosen(folder, *[line] * 4) == [["large.h"]] * 4


def test_the_same_header_by_several_paths(folder: Path) -> None:
    lines = ['#include "large.h"\n', '#include "../large.h"\n', '  #  include "large.h"\n', '#include "../large.h"\n']
    assert chosen(folder, *lines) == [["large.h"]] * 4


def test_each_source_gets_what_it_includes_itself(folder: Path) -> None:
    both, large, small = '#include "large.h"\n#include "small.h"\n', '#include "large.h"\n', '#include "small.h"\n'
    assert chosen(folder, *[both] * 4, small) == [["large.h", "small.h"]] * 4 + [[]]
    assert chosen(folder, *[both] * 4, large, small) == [["large.h"]] * 5 + [[]]
    assert chosen(folder, *[both] * 2, *[large] * 4) == [["large.h"]] * 6
    assert chosen(folder, *[small] * 8, *[both] * 8) == [["small.h"]] * 8 + [["large.h", "small.h"]] * 8


def test_what_is_included_under_a_condition_is_left_to_the_source(folder: Path) -> None:
    line = '#if defined(FAST)\n#include "large.h"\n#endif\n#include "small.h"\n'
    assert chosen(folder, *[line] * 5) == [["small.h"]] * 5


def test_what_stands_behind_a_header_counts(folder: Path) -> None:
    """The few that include `behind.h` are worth a reading of their own, although the header itself is short."""
    small, behind = '#include "small.h"\n', '#include "small.h"\n#include "behind.h"\n'
    assert chosen(folder, *[small] * 6, *[behind] * 6) == [["small.h"]] * 6 + [["small.h", "behind.h"]] * 6


def test_headers_of_the_system_are_named_as_they_are(folder: Path) -> None:
    line = "#include <vector>\n#include <no_such_sdk.h>\n"
    assert chosen(folder, *[line] * 4) == [["vector", "no_such_sdk.h"]] * 4
