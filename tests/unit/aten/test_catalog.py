"""The cache of torch's schemas: made once, used without torchgen, remade when it is stale or damaged."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from diopigen.aten import catalog
from diopigen.aten.catalog import Catalog, load
from diopigen.diagnostics import Diagnostics, Severity
from diopigen.model.aten import Provision


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def schemas(folder: Path) -> Catalog:
    return load(folder, Diagnostics())


def test_provision(schemas: Catalog) -> None:
    wanted = {
        "add.out": Provision.STRUCTURED,
        "add.Tensor": Provision.DELEGATE,
        "native_layer_norm": Provision.COMPOSITE,
        "relu": Provision.PLAIN,
    }
    found = {name: overload.provision for name in wanted if (overload := schemas.overload(name)) is not None}
    assert found == wanted


def test_signature_of_a_structured_overload(schemas: Catalog) -> None:
    add = schemas.overload("add_.Tensor")
    assert add is not None
    assert add.inplace and add.group == "add.out"
    assert add.cpp.operator == "add__Tensor"
    assert add.cpp.params[0] == ("at::Tensor &", "self")
    assert add.cpp.meta == "add_Tensor" and add.cpp.iterator


def test_redispatch_translates_sizes(schemas: Catalog) -> None:
    repeat = schemas.overload("repeat")
    assert repeat is not None
    assert repeat.cpp.redispatch == ("self", "c10::fromIntArrayRefSlow(repeats)")


def test_composites_with_a_derivative_are_told_apart(schemas: Catalog) -> None:
    found = {name: schemas.overload(name) for name in ("einsum", "linear", "native_layer_norm", "nll_loss.out")}
    # linear has a formula of its own, and an out form is not differentiated at all
    assert [name for name, o in found.items() if o is not None and o.implicit] == ["einsum"]


def test_group_has_every_form(schemas: Catalog) -> None:
    assert {o.name for o in schemas.group("add.out")} == {"add.out", "add.Tensor", "add_.Tensor"}


def test_a_good_cache_needs_neither_torch_nor_torchgen(schemas: Catalog, folder: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom diopigen.aten.catalog import load\n"
        "from diopigen.diagnostics import Diagnostics\n"
        f"assert load(Path({str(folder)!r}), Diagnostics()).overload('add.out') is not None\n"
        "assert not {'torch', 'torchgen'} & set(sys.modules), sorted(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_damaged_cache_is_made_again(schemas: Catalog, tmp_path: Path) -> None:
    diagnostics = Diagnostics()
    load(tmp_path, diagnostics)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"add_Tensor", b"add_Tonsor", 1))
    again = load(tmp_path, diagnostics)
    assert [(d.severity, d.code) for d in diagnostics.found] == [(Severity.WARNING, "cache-damaged")]
    assert again.lines == schemas.lines
    assert path.read_bytes() == whole


@pytest.mark.parametrize("rest", [b"", b"\n", b"\xff\xfe\n\n", b'{"format": 0}\nabc\n'])
def test_a_stale_or_empty_cache_is_made_again(
    schemas: Catalog, tmp_path: Path, rest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"aten-{schemas.torch}.tsv").write_bytes(rest)

    def distilling(*files: Path) -> Callable[[], bytes]:
        assert all(file.is_file() for file in files)
        return lambda: b'x\t{"y":1}\n'

    monkeypatch.setattr(catalog, "_distilling", distilling)  # which takes a second
    assert load(tmp_path, Diagnostics()).lines == {"x": '{"y":1}'}


def test_a_program_that_ends_without_the_catalog_says_nothing(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom diopigen.aten.catalog import loading\n"
        "from diopigen.diagnostics import Diagnostics\n"
        f"loading(Path({str(tmp_path)!r}), Diagnostics())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr, list(tmp_path.iterdir())) == ("", "", [])


def test_without_torch_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise catalog.PackageNotFoundError(name)

    monkeypatch.setattr(catalog, "version", absent)
    with pytest.raises(catalog.TorchMissing, match="torch is not installed"):
        load(tmp_path, Diagnostics())
