"""What SECURITY.md promises: each sentence of its second list is the first paragraph of a test."""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from diopi_conformance.outcome import Outcome, Verdict
from diopi_conformance.process.library import error_text
from diopi_conformance.process.stderr_tail import StderrTail
from diopi_conformance.running.journal import Identity, Journal, JournalError, resumed
from diopigen.emit.manifest import read_manifest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for name in ("generators", "conformance", "python", "tools") for path in (ROOT / name).rglob("*.py")]


def sentences() -> list[str]:
    """The items of the list of what is not trusted, unfolded."""
    section = (ROOT / "SECURITY.md").read_text(encoding="utf-8").split("\n## ")[2]
    return [" ".join(item.split()) for item in re.findall(r"^- (.+?)$", section, re.MULTILINE)]


def test_each_sentence_has_a_test() -> None:
    told = {" ".join((test.__doc__ or "").split()) for name, test in globals().items() if name.startswith("test_")}
    assert [sentence for sentence in sentences() if sentence not in told] == [] and len(sentences()) == 10
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def captured(root: Path, change: dict[str, object]) -> None:
    """A capture of `-x` whose record was changed."""
    import torch

    import op_tools
    from op_tools.store.layout import captures_in

    with op_tools.OpCapture("aten.neg", folder=root):
        torch.ones(2).neg()
    (folder,) = captures_in(root)
    record = json.loads((folder / "input.json").read_text())
    (folder / "input.json").write_text(json.dumps(record | change))


def test_captures(tmp_path: Path) -> None:
    """A capture names the operator to call: torch's own operators on tensors and numbers run; any other needs `--allow
    OPERATOR`."""
    from op_tools.replay import replay
    from op_tools.store.reader import NotAllowed, captures

    name = "aten.from_file.default"
    given = {"filename": str(tmp_path / "made"), "shared": True, "size": 4, "dtype": {"dtype": "uint8"}}
    captured(tmp_path / "captures", {"operator": name, "arguments": given})
    with pytest.raises(NotAllowed, match=f"'{name}' is not run, because its argument 'filename' is neither"):
        [replay(capture, "cpu", against_cpu=False) for capture in captures(tmp_path / "captures")]
    assert not (tmp_path / "made").exists()
    [replay(capture, "cpu", against_cpu=False) for capture in captures(tmp_path / "captures", frozenset({name}))]
    assert (tmp_path / "made").exists()


def test_memory(tmp_path: Path) -> None:
    """The memory of a capture or a recording is read only if its content matches the checksum in its name."""
    from op_tools.store.reader import BadCapture, captures

    captured(tmp_path, {})
    for path in (tmp_path / "memory").iterdir():
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(BadCapture, match="its content is not what was written"):
        [capture.call("cpu") for capture in captures(tmp_path)]


def test_programs(tmp_path: Path) -> None:
    """A compiled program is loaded from the cache only if nobody but the user and root can write it, and its content
    matches the checksum in its name."""
    from dicp import cache

    place = tmp_path / "key"
    place.mkdir(mode=0o700)
    library = place / "program.so"
    library.write_bytes(b"a program")
    library.chmod(0o700)
    assert cache._whole(place) is None
    library = library.rename(place / cache._name("key", library))
    assert cache._whole(place) == library
    for path, mode in ((library, 0o722), (place, 0o722)):
        path.chmod(mode)
        assert cache._whole(place) is None
        path.chmod(0o700)
    if os.geteuid() == 0:
        os.chown(library, 12345, -1)
        assert cache._whole(place) is None
        os.chown(library, 0, -1)
    library.write_bytes(b"another one")
    assert cache._whole(place) is None


def test_journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a conformance journal counts only if a run of this user wrote it, after the lines before it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    identity = Identity(vendor="v", plan="p", suite="s", library="l", variant={})
    journal = Journal(tmp_path / "journal", identity, {})
    for number in range(2):
        journal.write(Outcome(id=f"a/f32/{number}", function="diopiA", op="a", verdict=Verdict.FAIL))
    journal.close(complete=False)
    written = (tmp_path / "journal").read_bytes()
    assert len(resumed(tmp_path / "journal", identity)) == 2
    head, first, second = written.splitlines(keepends=True)
    for forged in (written.replace(b'"fail"', b'"pass"'), head + second + first, written + second):
        (tmp_path / "journal").write_bytes(forged)
        with pytest.raises(JournalError, match="no run of this user has written this line"):
            resumed(tmp_path / "journal", identity)


def test_manifests(tmp_path: Path) -> None:
    """A manifest counts only for files below its own root."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    names = ("inside.h", "../outside.h", str(tmp_path / "outside.h"), "link/outside.h")
    (tmp_path / "manifest").write_text(json.dumps({"files": dict.fromkeys(names, "0")}))
    assert list(read_manifest(tmp_path / "manifest", tmp_path / "root").files) == ["inside.h"]


def test_formats() -> None:
    """Nothing from a file or another process is unpickled, and YAML is loaded as plain values only."""
    unpickled = re.compile(r"\bpickle\.loads?\(|torch\.load\(|allow_pickle=True|\bmarshal\.loads?\(|\bshelve\.")
    suites = ROOT / "python" / "op_tools" / "op_tools" / "torch_tests" / "suites"  # tests of torch's own serialization
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES if suites not in path.parents}
    assert [path for path, text in texts.items() if unpickled.search(text)] == []
    loads = [call for text in texts.values() for call in re.findall(r"yaml\.(?:load|compose|unsafe_load)\(.*", text)]
    assert loads and [call for call in loads if "Safe" not in call and "_Loader" not in call] == []


def test_error_texts() -> None:
    """A library's error text becomes one line of printable characters, cut after 2000 bytes."""
    assert error_text(b"no \x1b[31mkernel\n caf\xe9") == r"no \x1b[31mkernel  caf" + "\ufffd"
    assert error_text(b"e" * 3000) == "e" * 2000 + "... (1000 more bytes)"
    assert error_text(None) == error_text(b"") == ""


def test_prints(capfd: pytest.CaptureFixture[str]) -> None:
    """Of a library's output under the conformance suite, 1 MiB per process is passed on."""
    program = "import sys; sys.stderr.write('x' * (3 << 20))"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
        said = StderrTail(process)
        process.wait()
        assert said.all() == "x" * 8192
    told = capfd.readouterr().err
    rest = "\ndiopi-conformance: 2097152 more bytes that the library printed are left out\n"
    assert told == "x" * (1 << 20) + rest


def whole() -> ModuleType:
    """torch_dipu._intact, without the package, which starts the device."""
    path = ROOT / "python" / "torch_dipu" / "torch_dipu" / "_intact.py"
    spec = importlib.util.spec_from_file_location("whole", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_libraries(tmp_path: Path) -> None:
    """A truncated shared library of the PyTorch backend is refused before it is loaded."""
    path = tmp_path / "lib.so"
    shutil.copy(next(Path(np.__file__).parent.rglob("*.so")), path)
    whole().check_intact([path, tmp_path / "missing.so"])
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(ImportError, match=r"lib\.so was cut off: it has \d+ of \d+ bytes"):
        whole().check_intact([path])


def test_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make setup` installs a package only if its file has one of the hashes listed in `constraints/`."""
    pytest.importorskip("pip")  # an environment that uv makes has none
    from tools.constraints import Entry, install

    wheel = tmp_path / "pebble-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as files:
        files.writestr("pebble.py", "")
        files.writestr("pebble-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: pebble\nVersion: 1.0\n")
        files.writestr("pebble-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        files.writestr("pebble-1.0.dist-info/RECORD", "")
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}
    for name, value in (settings | {"PIP_TARGET": str(tmp_path / "to")}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tools.constraints.FOLDER", tmp_path)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.13.0")
    for listed in ("0" * 64, right):
        pebble = Entry(name="pebble", version="1.0", hashes=(listed,), needed_by=("",))
        (tmp_path / "torch-2.13.txt").write_text(str(pebble), encoding="utf-8")
        if listed == right:
            install("2.13", ["--quiet"])
        else:
            with pytest.raises(SystemExit):
                install("2.13", ["--quiet"])
        assert (tmp_path / "to" / "pebble.py").exists() == (listed == right)
