"""docs/moving-over.md: its commands run, and its variables are those of the code, with the effect that it gives."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import processes
from tests.processes import ROOT

PAGE = (ROOT / "docs" / "moving-over.md").read_text(encoding="utf-8")
_SETTINGS = ROOT / "runtime_cpp" / "torch" / "settings.cpp"
_PACKAGE = ROOT / "python" / "torch_dipu"
_VARIABLE = re.compile(r"DIPU_[A-Z_0-9]+")
_REPORT = "dipu: environment variables without effect: "


def rows() -> Iterator[tuple[set[str], str]]:
    """The DIPU_ variables of each row of the two tables, with what the row says of them."""
    section = PAGE.partition("## Environment variables")[2]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 2:
            yield set(_VARIABLE.findall(cells[0])), cells[1]


def named(*, effect: bool) -> set[str]:
    """The variables that the page gives with, or without, an effect."""
    return {name for names, text in rows() for name in names if text.startswith("without effect") != effect}


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_every_variable_that_the_backend_reads_stands_on_the_page() -> None:
    sources = [_SETTINGS, *_PACKAGE.rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    read = {name for text in texts for name in re.findall(r"\"(DIPU_[A-Z_]+)\"", text)}
    assert read and read <= named(effect=True)


def test_the_warning_names_those_without_effect_and_no_other(libraries: Path) -> None:
    harmless = {name: "0" for name in named(effect=True) if name != "DIPU_LIBRARY_DIR"}
    lists = {
        name: ""
        for name in harmless
        if name.endswith(("_LIST", "_LIBRARY", "_VENDOR", "_MISMATCH", "_FOLDER", "_COLLECTIVES"))
    }
    useless = {name: "1" for name in named(effect=False)}
    variables = {**harmless, **lists, **useless, "TORCH_CPP_LOG_LEVEL": "WARNING"}
    done = processes.run_python("-c", "import torch_dipu; torch_dipu.start()", **variables)
    assert done.returncode == 0, done.stderr
    reported = re.findall(rf"{_REPORT}([A-Z_, 0-9]+)", done.stderr)
    assert [set(text.strip().split(", ")) for text in reported] == [set(useless)]


@pytest.mark.parametrize("block", fences("console"))
def test_commands_print_what_the_page_says(block: str, libraries: Path) -> None:
    command, _, expected = block.partition("\n")
    words = command.removeprefix("$ python ").split()
    done = processes.run_python(*words, DIPU_LIBRARY_DIR=str(libraries))
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(re.escape(expected).replace(re.escape("..."), ".+"), done.stdout)


def test_the_variables_are_all_that_the_clients_build_reads() -> None:
    exported = {line.partition("=")[0].removeprefix("export ") for line in fences("console")[0].splitlines()[1:]}
    (mmcv,) = (block for block in fences("sh") if "mmcv" in block)
    assert subprocess.run(["bash", "-n", "-c", mmcv], check=False).returncode == 0
    assert 'eval "$(python -m torch_dipu --client-environment)"' in mmcv.splitlines()
    table = PAGE.partition("## C++ programs")[2].partition("## Environment")[0]
    assert set(re.findall(r"-[IL]\$([A-Z_]+)", table)) <= exported


def test_commands_that_need_a_vendors_sources_exist() -> None:
    words = [line.split("#")[0].split() for block in fences("sh") for line in block.splitlines()]
    commands = [line[1] for line in words if line[0] == "diopigen"]
    assert commands == ["new-vendor", "lint", "coverage"]
    for command in commands:
        done = processes.run_python("-m", "diopigen", command, "--help")
        assert (done.returncode, "--vendor" in done.stdout or command == "new-vendor") == (0, True), done.stderr
    targets = {line[1] for line in words if line[0] == "make"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets and all(re.search(rf"^{target}: ", makefile, re.MULTILINE) for target in targets)
