"""The vendor's name, as its vendor.yaml and its folder give it."""

from pathlib import Path

import pytest

from diopigen.project import vendor_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("name: marble\n", "marble"),
        ("name: 'marble'  # as the product is called\n", "marble"),
        ('doc: A chip.\n"name" : "marble"\n', "marble"),
        ("{doc: A chip., name: marble}\n", "marble"),
        ("doc: |\n  text\n  name: granite\n", "folder"),
        ("name:\n", "folder"),
        ("name: [marble]\n", "folder"),
        ("name: a: b\n", "folder"),
        ("- name: marble\n", "folder"),
        ("", "folder"),
        (None, "folder"),
    ],
)
def test_the_name_is_what_yaml_says(tmp_path: Path, text: str | None, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    if text is not None:
        (folder / "vendor.yaml").write_text(text, encoding="utf-8")
    assert vendor_name(folder) == name
