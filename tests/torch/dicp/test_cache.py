"""Built programs on disk: found again, safe between processes, whole or not there."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dicp import fingerprint
from dicp.cache import built, program_key
from dicp.operators import Table
from dicp.target import BuildFailed, Target
from diopigen.records.codec import record_text
from diopigen.records.operators import Operators

SOURCE = 'extern "C" int one() { return 1; }\n'


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """A target that counts its builds."""
    folder = tmp_path / "lib"
    (folder / "compiler").mkdir(parents=True)
    table = record_text(Operators(functions={}, kernels={}, operators={}, separate_elements=()))
    (folder / "compiler" / "operators.json").write_text(table)
    flags = ("-shared", "-fPIC")
    made = Counting(vendor="chip", folder=folder, compiler="c++", flags=flags, include=(), link=(), suffix=".cpp")
    assert isinstance(made.table, Table)
    return made


class Counting(Target):
    builds = 0

    def build(self, source: Path, library: Path) -> None:
        type(self).builds += 1
        super().build(source, library)


def test_a_program_is_built_once(target: Counting, tmp_path: Path) -> None:
    before = Counting.builds
    first = built(target, SOURCE, tmp_path / "cache")
    assert built(target, SOURCE, tmp_path / "cache") == first and Counting.builds == before + 1
    content = first.parent.name.encode() + first.read_bytes()
    assert first.name == f"program-{hashlib.sha256(content).hexdigest()}.so"
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name, "program.cpp"]


CHANGES: dict[str, Callable[[Target], Target]] = {
    "flags": lambda t: replace(t, flags=(*t.flags, "-O1")),
    "compiler": lambda t: replace(t, compiler="g++"),
    "headers": lambda t: replace(t, include=("/elsewhere",)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_compiler_makes_another_program(target: Target, tmp_path: Path, name: str) -> None:
    first = built(target, SOURCE, tmp_path / "cache")
    assert built(CHANGES[name](target), SOURCE, tmp_path / "cache") != first
    assert built(target, SOURCE.replace("1", "2"), tmp_path / "cache") != first


def test_another_library_makes_another_program(target: Target, tmp_path: Path) -> None:
    first = built(target, SOURCE, tmp_path / "cache")
    (target.folder / "libdiopi_impl.so").write_bytes(b"new")
    assert built(target, SOURCE, tmp_path / "cache") != first


def replaced(path: Path, content: bytes) -> None:
    """Another content of the same length, from the same second: what a copy leaves of a file's other properties."""
    before = path.stat()
    assert len(content) == before.st_size
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_library_that_is_copied_over_another_makes_another_program(target: Target, tmp_path: Path) -> None:
    library = target.folder / "libdiopi_impl.so"
    library.write_bytes(b"old")
    first = program_key(target, SOURCE)
    assert program_key(target, SOURCE) == first
    replaced(library, b"new")
    assert program_key(target, SOURCE) != first
    replaced(library, b"old")
    assert program_key(target, SOURCE) == first


def test_a_header_that_is_included_by_another_makes_another_program(target: Target, tmp_path: Path) -> None:
    folder = tmp_path / "include" / "core"
    folder.mkdir(parents=True)
    (folder / "outer.h").write_text('#  include "inner.h"\n#include <vector>\n')
    (folder / "inner.h").write_text('#include "outer.h"\n')
    (folder / "other.h").write_text("old\n")
    made = replace(target, include=(str(tmp_path / "include"),))
    source = "#include <core/outer.h>\n" + SOURCE
    first = program_key(made, source)
    (folder / "other.h").write_text("a header that the program does not include\n")
    assert program_key(made, source) == first
    replaced(folder / "inner.h", b'#include "outer,h"\n')
    assert program_key(made, source) != first


def test_the_launcher_that_a_flag_names_is_a_header(target: Target, tmp_path: Path) -> None:
    launcher = tmp_path / "launcher.h"
    launcher.write_text("old\n")
    made = replace(target, flags=(*target.flags, f'-DDIOPI_LAUNCHER_HEADER="{launcher}"'))
    assert made.headers(SOURCE) == [launcher]
    first = program_key(made, SOURCE)
    replaced(launcher, b"new\n")
    assert program_key(made, SOURCE) != first


def test_another_version_of_the_compiler_makes_another_program(target: Target, tmp_path: Path) -> None:
    """The compiler's name is the same, and that of a link to what compiles it; its own words say that it is new."""
    driver, version = tmp_path / "driver", tmp_path / "version"
    driver.write_text(f"#!/bin/sh\ncat {version}\n")
    driver.chmod(0o755)
    version.write_text("12.2")
    first = program_key(replace(target, compiler=str(driver)), SOURCE)
    fingerprint._version.cache_clear()
    version.write_text("12.3")
    assert program_key(replace(target, compiler=str(driver)), SOURCE) != first


def test_another_processor_makes_another_program(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    native = replace(target, flags=(*target.flags, "-march=native"))
    anywhere, here = program_key(target, SOURCE), program_key(native, SOURCE)
    assert "flags:" in native.key or "Features:" in native.key
    monkeypatch.setattr(fingerprint, "_this_processor", lambda: "another")
    assert program_key(native, SOURCE) != here
    assert program_key(target, SOURCE) == anywhere


def test_what_the_compiler_refuses_leaves_nothing(target: Target, tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match=r"(?s)c\+\+ refused .*program\.cpp:\n.*error"):
        built(target, "int one() { return }\n", tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_compiler_that_is_not_there_is_named(target: Target, tmp_path: Path) -> None:
    with pytest.raises(BuildFailed) as raised:
        built(replace(target, compiler="c++-of-nobody"), SOURCE, tmp_path / "cache")
    reason = "No such file or directory; install it, or put it on PATH"
    assert str(raised.value) == f"the compiler 'c++-of-nobody' cannot be started: {reason}"
    assert list((tmp_path / "cache").iterdir()) == []


def test_threads_that_build_the_same_program_get_the_same(target: Target, tmp_path: Path) -> None:
    found: list[Path] = []
    threads = [
        threading.Thread(target=lambda: found.append(built(target, SOURCE, tmp_path / "cache"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1 and len(found) == 4
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_build_that_was_killed_is_no_program(target: Target, tmp_path: Path) -> None:
    """A process is killed in the middle of its compiler's run; another one builds the program."""
    slow = tmp_path / "slow-c++"
    slow.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit\necho > {tmp_path}/started\nsleep 60\n')
    slow.chmod(0o755)
    program = f"""
from pathlib import Path
from dicp.cache import built
from dicp.target import Target
target = Target(vendor="chip", folder=Path({str(target.folder)!r}), compiler={str(slow)!r}, flags=(), include=(),
                link=(), suffix=".cpp")
built(target, {SOURCE!r}, Path({str(tmp_path / "cache")!r}))
"""
    process = subprocess.Popen([sys.executable, "-c", program], env=os.environ, start_new_session=True)
    while not (tmp_path / "started").exists():
        assert process.poll() is None
    os.killpg(process.pid, 9)
    process.wait()
    assert not list((tmp_path / "cache").glob("[!.]*"))
    library = built(target, SOURCE, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == [library.parent]


def cut(library: Path) -> None:
    os.truncate(library, library.stat().st_size // 2)


def flip(library: Path) -> None:
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 1
    library.write_bytes(content)


def link_elsewhere(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def put_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(b"")


def put_a_folder(library: Path) -> None:
    library.unlink()
    library.mkdir()


def move_to_the_old_name(library: Path) -> None:
    library.rename(library.with_name("program.so"))


def take_that_of_another_program(library: Path) -> None:
    content = b"another" + library.read_bytes()
    library.rename(library.with_name(f"program-{hashlib.sha256(content).hexdigest()}.so"))


def give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files to others")
    os.chown(path, 12345, -1)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda library: library.write_bytes(b""),
    "truncated": cut,
    "one bit": flip,
    "missing": lambda library: library.unlink(),
    "a folder": put_a_folder,
    "a link": link_elsewhere,
    "the name before there were checksums": move_to_the_old_name,
    "of another program": take_that_of_another_program,
    "writable by the group": lambda library: library.chmod(0o770),
    "writable by all": lambda library: library.chmod(0o707),
    "of another user": give_away,
    "in a folder that all may write": lambda library: library.parent.chmod(0o777),
    "in a folder of another user": lambda library: give_away(library.parent),
    "in a folder that is a link": lambda library: link_elsewhere(library.parent),
    "in no folder": lambda library: put_a_file(library.parent),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_others_may_have_written_and_what_is_damaged_is_built_again(
    target: Counting, tmp_path: Path, name: str
) -> None:
    first = built(target, SOURCE, tmp_path / "cache")
    DAMAGE[name](first)
    before = Counting.builds
    again = built(target, SOURCE, tmp_path / "cache")
    assert Counting.builds == before + 1
    assert ctypes.CDLL(str(again)).one() == 1
    assert built(target, SOURCE, tmp_path / "cache") == again and Counting.builds == before + 1
    assert [path.name for path in again.parent.glob("*.so")] == [again.name]


@pytest.mark.parametrize(
    ("harm", "cure"),
    [(lambda folder: folder.chmod(0o777), "chmod go-w '{}'"), (give_away, "it belongs to another user")],
)
def test_a_cache_that_others_may_write_is_not_used(
    target: Counting, tmp_path: Path, harm: Callable[[Path], object], cure: str
) -> None:
    folder = tmp_path / "cache"
    first = built(target, SOURCE, folder)
    harm(folder)
    with pytest.warns(UserWarning) as told:
        other = built(target, SOURCE, folder)
    assert [str(warning.message) for warning in told] == [
        f"the cache of programs, {folder}, is not used, because others may write it: {cure.format(folder)}"
    ]
    assert other.parent.parent != folder and list(folder.iterdir()) == [first.parent]


@pytest.mark.parametrize(
    ("harm", "cure"),
    [(lambda folder: folder.chmod(0o777), "chmod go-w '{}'"), (give_away, "{} belongs to another user")],
)
def test_a_cache_in_a_folder_that_others_may_write_is_not_used(
    target: Target, tmp_path: Path, harm: Callable[[Path], object], cure: str
) -> None:
    """Who may write a folder above it may put another cache there."""
    above = tmp_path / "above"
    folder = above / "between" / "cache"
    built(target, SOURCE, folder)
    harm(above)
    with pytest.warns(UserWarning) as told:
        other = built(target, SOURCE, folder)
    assert [str(warning.message) for warning in told] == [
        f"the cache of programs, {folder}, is not used, because others may write it: {cure.format(above)}"
    ]
    assert other.parent.parent != folder


def test_a_cache_that_cannot_be_made_is_not_used(target: Counting, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "cache"
    before = Counting.builds
    for _ in range(2):
        with pytest.warns(UserWarning) as told:
            library = built(target, SOURCE, folder)
        assert [str(warning.message) for warning in told] == [
            f"the cache of programs, {folder}, is not used, because it cannot be made: Not a directory; "
            "set DICP_CACHE to a folder that can"
        ]
    assert ctypes.CDLL(str(library)).one() == 1 and Counting.builds <= before + 1


def test_a_cache_that_can_only_be_read_gives_what_it_has(
    target: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    kept = built(target, SOURCE, folder)
    may = os.access  # root may write whatever the bits say
    monkeypatch.setattr("dicp.cache.os.access", lambda path, mode: path != folder and may(path, mode))
    assert built(target, SOURCE, folder) == kept
    before = Counting.builds
    for _ in range(2):
        with pytest.warns(UserWarning) as told:
            other = built(target, SOURCE + "\n", folder)
        assert [str(warning.message) for warning in told] == [
            f"the cache of programs, {folder}, is not used, because it cannot be written; "
            "set DICP_CACHE to a folder that can"
        ]
        assert list(folder.iterdir()) == [kept.parent] and other.parent.parent != folder
    assert Counting.builds == before + 1


def test_a_cache_in_a_folder_where_each_keeps_his_own_is_used(target: Target, tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o1777)
    first = built(target, SOURCE, above / "cache")
    assert first.parent.parent == above / "cache"
    (tmp_path / "link").symlink_to(above / "cache")
    assert built(target, SOURCE, tmp_path / "link").resolve() == first


def test_folders_above_the_user_s_home_are_not_asked_about(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "homes" / "me"
    home.mkdir(parents=True)
    home.parent.chmod(0o777)
    entry = type("Entry", (), {"pw_dir": str(home)})
    monkeypatch.setattr("dicp.cache.pwd.getpwuid", lambda user: entry)
    assert built(target, SOURCE, home / "cache").parent.parent == home / "cache"


def test_the_folders_of_the_cache_are_private_whatever_the_mask(target: Target, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        first = built(target, SOURCE, tmp_path / "cache")
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (first.parent.parent, first.parent, first)] == [0o700] * 3
    assert built(target, SOURCE, tmp_path / "cache") == first


def test_programs_need_no_cache(target: Any) -> None:
    assert built(target, SOURCE, None).exists()
