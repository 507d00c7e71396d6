"""The wheels, installed into an environment elsewhere with the checkout hidden: training, cases, captures, programs."""

import email
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from setuptools import build_meta

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "build" / "wheels" / "dist"
deep = pytest.mark.deep("matrix", "the sources, the entry points and the package's files, without wheels of libraries")
# Prints which of the libraries for processors is loaded, by its place in the package.
CHOICE = """
import ctypes, pathlib, torch_dipu_droplet
folder = pathlib.Path(torch_dipu_droplet.__file__).parent
ctypes.CDLL(str(folder / "libdiopirt.so"), mode=ctypes.RTLD_GLOBAL)
assert ctypes.CDLL(str(folder / "libdiopi_impl.so")).diopiAdd
mapped = {line.split()[-1] for line in open("/proc/self/maps") if line.endswith("_cpu.so\\n")}
print(*[pathlib.Path(path).relative_to(folder) for path in mapped])
"""
TRAINING = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to("dipu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 8).to("dipu")
y = x.sum(1, keepdim=True)
losses = []
for _ in range(30):
    optimizer.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 50, losses
assert torch.dipu.fallback.report() == [], torch.dipu.fallback.report()
"""
COMPILED = """
import torch
def function(x):
    return (x.sin() * 2 + x).relu().sum(1)
x = torch.randn(4, 8).to("dipu")
torch.testing.assert_close(torch.compile(function, backend="diopi")(x).cpu(), function(x.cpu()))
assert any("program-" in line and line.endswith(".so\\n") for line in open("/proc/self/maps"))
"""


@pytest.fixture(scope="module")
def wheels() -> list[Path]:
    """All wheels for this environment's torch, as tools/wheels.py builds them."""
    command = [sys.executable, "tools/wheels.py", "--out", str(DIST)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(DIST.rglob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With what the wheels depend on."""
    return new_environment(wheels, tmp_path_factory.mktemp("installed"))


@pytest.fixture(scope="module")
def tools(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """And with what the conformance suite and the op tools depend on."""
    return new_environment(wheels, tmp_path_factory.mktemp("tools"), "diopigen[conformance,op-tools]")


def new_environment(wheels: list[Path], parent: Path, *more: str) -> Path:
    """A new environment with the wheels, and nothing that is installed from this checkout."""
    folder = parent / "environment"
    venv.create(folder, symlinks=True)
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    for file in wanted_files(wheels, more):
        target = site / os.path.relpath(file, sysconfig.get_path("purelib"))
        target.parent.mkdir(parents=True, exist_ok=True)
        _linked(str(file), str(target))
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder / "bin" / "python"),
        "install",
        "--no-deps",
        "--no-index",
    ]
    done = subprocess.run([*pip, *map(str, wheels)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def wanted_files(wheels: list[Path], more: Sequence[str]) -> Iterator[Path]:
    """What pip would install beside the wheels: the packages that they say they need, as this environment has them."""
    ours = {path.name.split("-")[0]: path for path in wheels}
    waiting = [Requirement(name) for name in (*ours, *more)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = wanted.name.lower().replace("-", "_")
        wheel = ours.get(name)
        if wheel is None:
            if (name, "") not in seen:
                yield from (Path(str(file.locate())) for file in metadata.files(name) or () if file.suffix != ".pyc")
            needs = metadata.requires(name) or []
        else:
            with zipfile.ZipFile(wheel) as packed:
                (text,) = (packed.read(entry) for entry in packed.namelist() if entry.endswith(".dist-info/METADATA"))
            needs = email.message_from_bytes(text).get_all("Requires-Dist") or []
        for extra in ("", *wanted.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                found = map(Requirement, needs)
                waiting += [need for need in found if need.marker is None or need.marker.evaluate({"extra": extra})]


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def hidden(environment: Path, *words: str, path: str = "/usr/bin:/bin") -> subprocess.CompletedProcess[str]:
    """What a program of the environment says with the checkout hidden below an empty file system."""
    if subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system has no mount namespaces for this user")
    script = 'mount -t tmpfs none "$0" && cd "$1" && PATH="$2" && shift 2 && exec "$@"'
    before = ["unshare", "-m", "/bin/bash", "-c", script, str(ROOT), str(environment.parent), path]
    variables = {
        key: value for key, value in os.environ.items() if not key.startswith(("DIPU_", "DIOPI_", "PYTHON", "TORCH_"))
    }
    command = [*before, str(environment / "bin" / words[0]), *words[1:]]
    variables["DICP_CACHE"] = str(environment.parent / "programs")
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600, check=False)


@deep
def test_no_file_names_the_checkout(wheels: list[Path]) -> None:
    assert [path.name.partition("-")[0] for path in wheels] == ["diopigen", "torch_dipu", "torch_dipu_droplet"]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            named = [name for name in archive.namelist() if str(ROOT).encode() in archive.read(name)]
        assert named == []


@deep
def test_libraries_are_found_from_their_own_folder(environment: Path) -> None:
    libraries = [path for name in ("torch_dipu", "torch_dipu_droplet") for path in environment.rglob(f"{name}/**/*.so")]
    assert len(libraries) == 9
    for library in libraries:
        told = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout
        paths = [line.partition("[")[2].rstrip("]") for line in told.splitlines() if "RUNPATH" in line]
        assert all(path.startswith("$ORIGIN") for text in paths for path in text.split(":")), (library, paths)
        assert "RPATH)" not in told


@deep
def test_a_model_trains_where_there_is_no_compiler(environment: Path) -> None:
    done = hidden(environment, "python", "-c", TRAINING, path="/nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@deep
def test_programs_are_compiled(environment: Path) -> None:
    done = hidden(environment, "python", "-c", COMPILED)
    assert done.returncode == 0, done.stderr


@deep
def test_programs_need_a_compiler(environment: Path) -> None:
    done = hidden(environment, "python", "-c", COMPILED.replace("+ x)", "- x)"), path="/nowhere")
    reason = "the compiler 'c++' cannot be started: No such file or directory; install it, or put it on PATH"
    assert done.returncode == 1 and f"BuildFailed: {reason}" in done.stderr, done.stderr


@deep
@pytest.mark.parametrize("processor", ["", "Nehalem"])
def test_cases_pass(tools: Path, processor: str) -> None:
    package = next(tools.rglob("torch_dipu_droplet/__init__.py")).parent
    results = tools.parent / f"results-{processor}.json"
    words = ["run", "--vendor", "droplet", "--libraries", str(package)]
    words += ["--plan", str(package / "conformance" / "plan.json")]
    words += ["--out", str(results), "--dtype", "float32", "--sample", "2", "--jobs", "2"]
    if processor:
        _require_qemu()
        words += ["--under", f"qemu-x86_64 -cpu {processor}"]
    done = hidden(tools, "diopi-conformance", *words, "--op", "add", "--op", "softmax", "--op", "mm")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(json.loads(results.read_text(encoding="utf-8"))["counts"]) == {"pass"}


@deep
@pytest.mark.parametrize(
    ("processor", "chosen"),
    [
        ("Nehalem", "libdiopi_impl_cpu.so"),
        ("Haswell", "glibc-hwcaps/x86-64-v3/libdiopi_impl_cpu.so"),
    ],
)
def test_the_loader_takes_what_the_processor_has(environment: Path, processor: str, chosen: str) -> None:
    qemu = _require_qemu()
    program = environment / "bin" / f"on-{processor}"
    program.write_text(f'#!/bin/sh\nexec {qemu} -cpu {processor} {environment}/bin/python "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    done = hidden(environment, program.name, "-c", CHOICE)
    assert (done.returncode, done.stdout) == (0, f"{chosen}\n"), done.stderr


def _require_qemu() -> str:
    qemu = shutil.which("qemu-x86_64")
    if qemu is None:
        pytest.skip("qemu-x86_64 is not installed")
    return qemu


@deep
def test_calls_are_captured(tools: Path) -> None:
    script = tools.parent / "script.py"
    script.write_text(TRAINING, encoding="utf-8")
    captures = tools.parent / "captures"
    done = hidden(tools, "op-tools", "run", "--capture", "aten.relu", "--folder", str(captures), str(script))
    assert done.returncode == 0, done.stdout + done.stderr
    done = hidden(tools, "op-tools", "replay", str(captures), "--device", "dipu", "--acc-check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_source_distribution_gives_the_wheel_of_the_checkout(
    tracked_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tracked_copy)
    source = tmp_path / build_meta.build_sdist(str(tmp_path))
    unpacked = tmp_path / "unpacked"
    shutil.unpack_archive(source, unpacked)
    contents = []
    for folder in (tracked_copy, next(unpacked.iterdir())):
        monkeypatch.chdir(folder)
        out = tmp_path / f"wheel-of-{folder.name}"
        name = build_meta.build_wheel(str(out))
        with zipfile.ZipFile(out / name) as archive:
            contents.append({entry.filename: entry.CRC for entry in archive.infolist()})
    assert contents[0] == contents[1]
    assert {"diopigen/share/schemas/dtypes.yaml", "dicp/backend.py", "op_tools/__init__.py"} < set(contents[0])
