"""Which files a run may read: those of the vendor and of what may be its bases."""

from pathlib import Path

import pytest

from diopigen.emit.fresh import input_files


@pytest.mark.parametrize(
    ("base", "read"),
    [
        ("", ["b"]),
        ("base: portable", ["b"]),
        ("base: a", ["b", "a"]),
        ("base: [portable, c]", ["b", "c", "a"]),
    ],
)
def test_the_files_of_bases_are_among_the_inputs(tmp_path: Path, base: str, read: list[str]) -> None:
    for name, text in {"a": "doc: A.\n", "b": f"doc: B.\n{base}\n", "c": "doc: C.\nbase: [a]\n"}.items():
        folder = tmp_path / "vendors" / name
        folder.mkdir(parents=True)
        (folder / "vendor.yaml").write_text(text, encoding="utf-8")
    found = [path.relative_to(tmp_path).as_posix() for path in input_files(tmp_path, "b")]
    assert found == [f"vendors/{name}/vendor.yaml" for name in read]
