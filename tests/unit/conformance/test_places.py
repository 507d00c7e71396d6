"""Where the commands look for a vendor's files when no option says so."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from diopi_conformance.cli import cli
from diopi_conformance.places import Places, own_vendor, places_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def installed(folder: Path, monkeypatch: pytest.MonkeyPatch, vendor: str = "slate") -> Path:
    """The package of a vendor, as pip leaves it."""
    site = folder / "site"
    package = site / f"torch_dipu_{vendor}"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    record = site / f"torch_dipu_{vendor}-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text(f"Name: torch_dipu_{vendor}\nVersion: 1.0\n", encoding="utf-8")
    entry = f"[torch_dipu.vendors]\n{vendor} = torch_dipu_{vendor}\n"
    (record / "entry_points.txt").write_text(entry, encoding="utf-8")
    monkeypatch.syspath_prepend(site)
    return package


def test_a_checkout(folder: Path) -> None:
    assert own_vendor() is None
    assert places_of("slate") == Places(
        plan=Path("generated/slate/conformance/plan.json"),
        libraries=Path("build/slate/lib"),
        known=Path("vendors/slate/known_failures.yaml"),
        build="make build IMPL=slate",
    )


def test_a_repository_of_its_own(folder: Path) -> None:
    (folder / "vendor.yaml").write_text("name: slate\n", encoding="utf-8")
    assert own_vendor() == "slate"
    assert places_of("slate") == Places(
        plan=Path("generated/slate/conformance/plan.json"),
        libraries=Path("build/lib"),
        known=Path("known_failures.yaml"),
        build="cmake -S . -B build && cmake --build build",
    )
    assert places_of("droplet").libraries == Path("build/droplet/lib")


def test_an_installed_vendor(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = installed(folder, monkeypatch)
    found = places_of("slate")
    assert (found.plan, found.libraries) == (package / "conformance" / "plan.json", package)
    (folder / "generated/slate/conformance").mkdir(parents=True)
    (folder / "generated/slate/conformance/plan.json").touch()
    assert places_of("slate").libraries == Path("build/slate/lib")  # what is generated here comes first


def test_the_vendor_is_needless_in_its_repository(folder: Path, plan_path: Path) -> None:
    missing = CliRunner().invoke(cli, ["run", "--plan", str(plan_path)])
    assert (missing.exit_code, missing.output.splitlines()[-1]) == (2, "Error: Missing option '--vendor'.")
    (folder / "vendor.yaml").write_text("name: v\n", encoding="utf-8")
    done = CliRunner().invoke(cli, ["run", "--plan", str(plan_path)])
    said = "Error: there is no build/lib/libdiopirt.so; build it with 'cmake -S . -B build && cmake --build build'"
    assert (done.exit_code, done.output.splitlines()[-1]) == (2, said)
