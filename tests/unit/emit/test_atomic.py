"""Files are written whole or stay as they were; links are followed, devices and pipes written to."""

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from diopigen.atomic import Unwritable, append, scratch_of, whole_folder, write_bytes, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_gets_its_folder_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "x"
    write_text(path, "1")
    path.chmod(0o750)
    write_text(path, "2")
    assert path.read_text() == "2"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert names(path.parent) == ["x"]


def test_what_a_killed_run_left_is_taken_over(tmp_path: Path) -> None:
    scratch_of(tmp_path / "x").write_text("half of a much longer text")
    write_text(tmp_path / "x", "1")
    assert (tmp_path / "x").read_text() == "1"
    assert names(tmp_path) == ["x"]


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for target in ("there/x", "there/new"):
        link = tmp_path / "link"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        write_text(link, target)
        assert link.is_symlink()
        assert (tmp_path / target).read_text() == target


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE, text=True)
    write_text(tmp_path / "pipe", "through")
    assert reader.communicate(timeout=60)[0] == "through"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_standard_output_and_devices_are_written_to(tmp_path: Path) -> None:
    code = "from diopigen.atomic import *; write_text(Path('/dev/stdout'), 'a'); write_text(Path('/dev/null'), 'b')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "a"
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", f"{code}; print('c')"], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "ac\n"
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("file/x", "Not a directory"),
        ("file/a/b/x", "Not a directory"),
        ("folder", "Is a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("n" * 300, "File name too long"),
        ("/dev/full", "No space left on device"),
    ],
)
def test_what_cannot_be_written_says_why(tmp_path: Path, place: str, reason: str) -> None:
    (tmp_path / "file").write_text("1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    before = names(tmp_path)
    for act in (write_bytes, append):
        with pytest.raises(Unwritable) as caught:
            act(tmp_path / place, b"2")
        assert str(caught.value) == f"{tmp_path / place} cannot be written: {reason}"
    assert names(tmp_path) == before
    assert (tmp_path / "file").read_text() == "1"


def limited(code: str, size: int) -> str:
    """What `code` prints where no file may be larger than `size`, as on a full disk."""
    opening = (
        "import resource, signal; from diopigen.atomic import *; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"
    )
    body = "".join(f"    {line}\n" for line in code.splitlines())
    whole = f"{opening}try:\n{body}except Unwritable as error: print(error)"
    return subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True).stdout


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    for act in ("write_bytes", "append"):
        said = limited(f"{act}(Path({str(path)!r}), bytes(100_000))", 50_000)
        assert said == f"{path} cannot be written: File too large\n"
        assert path.read_text() == "old"
    assert names(tmp_path) == ["x"]


def test_a_full_disk_leaves_the_old_folder(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.mkdir()
    (path / "a").write_text("old")
    code = f"with whole_folder(Path({str(path)!r})) as folder:\n    write_bytes(folder / 'a', bytes(100_000))"
    assert limited(code, 50_000) == f"{path} cannot be written: File too large\n"
    assert (path / "a").read_text() == "old"
    assert names(tmp_path) == ["x"]


def test_a_folder_takes_the_place_of_another(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "x"
    for content in ("1", "2"):
        with whole_folder(path) as folder:
            (folder / content).write_text(content)
        assert names(path) == [content]
        assert names(tmp_path / "deep") == ["x"]


def test_what_killed_runs_left_of_folders_is_cleared(tmp_path: Path) -> None:
    path = tmp_path / "x"
    (scratch_of(path) / "deep").mkdir(parents=True)
    (tmp_path / ".x.old").mkdir()
    (tmp_path / ".x.old" / "kept").write_text("1")
    with pytest.raises(ZeroDivisionError), whole_folder(path) as folder:
        assert names(folder) == []
        1 / 0  # noqa: B018
    assert names(tmp_path) == ["x"]
    assert names(path) == ["kept"]


def test_writers_at_once_each_write_whole_files(tmp_path: Path) -> None:
    path, texts = tmp_path / "x", [letter * 100_000 for letter in "abcd"]
    threads = [threading.Thread(target=lambda t=text: [write_text(path, t) for _ in range(20)]) for text in texts]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            assert path.read_text() in texts
    assert names(tmp_path) == ["x"]


def test_nothing_else_of_the_project_replaces_files(checkout: object) -> None:
    root = Path(__file__).resolve().parents[3]
    folders = ("generators/diopigen", "conformance/diopi_conformance", "python/op_tools/op_tools")
    found = {
        path.relative_to(root).as_posix()
        for folder in folders
        for path in (root / folder).rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("os.replace(", ".write_text(", ".write_bytes("))
    }
    assert not found
