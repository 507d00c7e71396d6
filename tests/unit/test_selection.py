"""The vendor's name, as its vendor.yaml and its folder give it."""

from pathlib import Path

import pytest

from diopigen.project import vendor_name
from tests import processes


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


def test_a_user_without_a_home_has_a_cache_for_a_while(tmp_path: Path) -> None:
    """As of an installed package, whose cache is the user's."""
    program = "from diopigen import project; print(project._own_root())"
    done = processes.run_python("-c", program, HOME=str(tmp_path))
    assert (done.stdout, done.stderr) == (f"{tmp_path}\n", "")
    done = processes.run_python("-c", program, HOME="/proc", TMPDIR=str(tmp_path))
    assert Path(done.stdout.strip()).parent == tmp_path and done.stderr == ""
    assert [path.name for path in tmp_path.iterdir()] == [".cache"]  # the other one is gone
