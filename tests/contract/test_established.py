"""Headers as they have always been, in C++ and without their diopirt.h, agree with ours: nothing breaks or moves."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from diopigen.cli import cli
from diopigen.project import Project

FACTS = json.loads((Path(__file__).parent / "functions.json").read_text(encoding="utf-8"))["functions"]
HEAD = '#include <cstddef>\n#include "diopirt.h"\n\n#if defined(__cplusplus)\nextern "C" {\n#endif\n'
TAIL = "\n#if defined(__cplusplus)\n}\n#endif\n"


def declaration(fact: dict[str, object]) -> str:
    params = fact["params"]
    assert isinstance(params, list)
    return f"{fact['linkage']} {fact['returns']} {fact['name']}({', '.join(f'{t} {n}' for t, n in params)});"


@pytest.fixture
def established(tmp_path: Path) -> Path:
    folder = tmp_path / "established"
    folder.mkdir()
    headers = dict.fromkeys(fact["header"] for fact in FACTS if fact["header"] != "diopirt.h")
    for header in headers:
        declarations = [declaration(fact) for fact in FACTS if fact["header"] == header]
        (folder / header).write_text(HEAD + "\n".join(declarations) + TAIL, encoding="utf-8")
    return folder


def test_nothing_breaks(established: Path, checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(tmp_path / "cache"))
    words = ["--project", str(checkout.root), "compat", "--against", str(established)]
    result = CliRunner().invoke(cli, words)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1] == f"nothing breaks of {established} (functions: 541, types: 0)"


def test_another_type_is_noticed(
    established: Path, checkout: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIOPIGEN_CACHE_DIR", str(tmp_path / "cache"))
    header = established / "functions_mmcv.h"
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("int64_t", "int32_t", 1), encoding="utf-8")
    result = CliRunner().invoke(cli, ["--project", str(checkout.root), "compat", "--against", str(established)])
    assert result.exit_code == 1
    assert result.stderr.count("error[compat-type]") == 1
    assert "is 'int64_t' now" in result.stderr


def test_a_reader_of_lines_finds_every_declaration(checkout: Project) -> None:
    """Existing generators take a line that begins with DIOPI for a declaration, which goes on to the next ')'."""
    found = {}
    for header in sorted(checkout.headers.glob("diopi/functions*.h")):
        text = "\n" + header.read_text(encoding="utf-8")
        for declaration in text.split("\nDIOPI")[1:]:
            head, _, rest = declaration.partition("(")
            linkage, *result, name = head.split(" ")
            params, _, end = rest.partition(")")
            assert linkage in ("_API", "_RT_API") and end.startswith(";\n"), declaration
            names = [param.split()[-1].lstrip("*") for param in params.split(",")]
            found[name] = [f"DIOPI{linkage}", " ".join(result), names]
    for fact in FACTS:
        if fact["linkage"] == "DIOPI_API":
            names = [name for _, name in fact["params"]]
            assert found[fact["name"]] == [fact["linkage"], fact["returns"], names], fact["name"]
