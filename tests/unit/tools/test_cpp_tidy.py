"""What clang-tidy is asked about, and what is remembered of its answers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tools import cpp_tidy

UNIT = '#include "kind.h"\n\nint* none() { return 0; }\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(cpp_tidy.ROOT / ".clang-tidy", tmp_path)
    (tmp_path / ".clang-format-ignore").touch()
    (tmp_path / "runtime_cpp").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setattr(cpp_tidy, "ROOT", tmp_path)
    monkeypatch.setattr(cpp_tidy, "_CLEAN", tmp_path / "build" / "clean.txt")
    return tmp_path


def write(root: Path, header: str, unit: str) -> None:
    (root / "runtime_cpp" / "kind.h").write_text(header, encoding="utf-8")
    (root / "runtime_cpp" / "unit.cpp").write_text(unit, encoding="utf-8")


def test_a_finding(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(root, "#include <string>\n", UNIT)
    assert [cpp_tidy.main() for _ in range(2)] == [1, 1]
    first = capfd.readouterr().err.splitlines()[0]
    told = "unit.cpp:3:22: error: use nullptr [modernize-use-nullptr,-warnings-as-errors]"
    assert first == f"{root}/runtime_cpp/{told}"


def test_a_unit_is_asked_about_again_when_its_header_changes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(cpp_tidy, "_findings", lambda unit: asked.append(unit.name) or "")
    write(root, "#include <string>\n", UNIT)
    assert [cpp_tidy.main() for _ in range(2)] == [0, 0] and asked == ["unit.cpp"]
    write(root, "#include <string>\n#include <vector>\n", UNIT)
    assert cpp_tidy.main() == 0 and asked == ["unit.cpp"] * 2


def test_a_unit_of_torch_is_left_out(root: Path) -> None:
    write(root, "#include <ATen/Tensor.h>\n", UNIT)
    assert cpp_tidy.main() == 0


def test_what_lies_above_the_checkout_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a checkout below another one."""
    monkeypatch.setattr(cpp_tidy, "ROOT", tmp_path / "inner")
    for folder in ("runtime_cpp", "inner/runtime_cpp"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "kind.h").touch()
    unit = tmp_path / "inner" / "runtime_cpp" / "unit.cpp"
    unit.write_text('#include "../runtime_cpp/kind.h"\n', encoding="utf-8")
    read = {path.resolve() for path in cpp_tidy._read(unit)}
    assert read == {unit, unit.with_name("kind.h")}
