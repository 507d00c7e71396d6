"""What the three programs say where a package of an extra is not installed."""

import sys

import pytest

from diopigen import programs


@pytest.mark.parametrize("program", ["op-tools", "diopi-conformance"])
def test_one_line_names_what_to_install(
    program: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def lacking(module: str) -> None:
        raise ModuleNotFoundError("No module named 'safetensors'", name="safetensors.torch")

    monkeypatch.setattr(programs, "import_module", lacking)
    monkeypatch.setattr(sys, "argv", [f"/usr/bin/{program}", "--help"])
    with pytest.raises(SystemExit) as left:
        programs.op_tools()
    line = f"the Python module 'safetensors' is missing: run '{sys.executable} -m pip install -e .'\n"
    assert (left.value.code, capfd.readouterr().err) == (2, line)


def test_an_installed_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.Path, "is_dir", lambda path: path.name == "share")
    said = programs.missing("numpy.linalg", "diopi-conformance")
    assert said.startswith("the Python module 'numpy' is missing: run '")
    assert said.endswith(' -m pip install "diopigen[conformance]"\'')


def test_a_module_of_our_own_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(module: str) -> None:
        raise ModuleNotFoundError("No module named 'op_tools.gone'", name="op_tools.gone")

    monkeypatch.setattr(programs, "import_module", lacking)
    with pytest.raises(ModuleNotFoundError):
        programs.op_tools()
