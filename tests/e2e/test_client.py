"""C++ programs that were written for DIPU: headers, names and `-ltorch_dipu`, built with what the package prints."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tests import processes
from tests.built import compiled
from tests.processes import ROOT

_HERE = Path(__file__).parent
_LOAD = (
    "import json, os, torch, torch_dipu; torch_dipu.start()\ntorch.ops.load_library({client!r})\nc = torch.ops.client\n"
)


def environment(text: str) -> dict[str, str]:
    """The variables that lines for a shell export."""
    words = (shlex.split(line) for line in text.splitlines())
    return dict(assignment.split("=", 1) for _, assignment in words)


@pytest.fixture(scope="session")
def variables(libraries: Path) -> dict[str, str]:
    """What `python -m torch_dipu --client-environment` prints."""
    done = processes.run_python("-m", "torch_dipu", "--client-environment", DIPU_LIBRARY_DIR=str(libraries))
    assert done.returncode == 0, done.stderr
    return environment(done.stdout)


def build(variables: dict[str, str], *flags: str) -> Path:
    """The program as mmcv's setup.py has it built: these folders, C++17 or what torch asks for, and DIOPI_ATTR_WEAK."""
    headers, libraries = processes.torch_folders()
    root, contract = variables["DIPU_ROOT"], variables["DIOPI_PATH"]
    folders = [root, f"{contract}/include", f"{variables['DIPU_PATH']}/dist/include", variables["VENDOR_INCLUDE_DIRS"]]
    folders.append(f"{variables['PYTORCH_DIR']}torch/include")
    release = tuple(int(number) for number in version("torch").split(".")[:2])
    words = [
        "g++",
        "-std=c++17" if release < (2, 14) else "-std=c++20",
        "-O0",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Werror",
        "-DDIOPI_ATTR_WEAK",
    ]
    words += ["-D_GLIBCXX_USE_CXX11_ABI=1", *(f"-I{folder}" for folder in folders)]
    words += [f"-isystem{folder}" for folder in headers]  # no warnings of torch's own headers
    link_words = [*(f"-L{path}" for path in libraries), f"-L{root}", "-ltorch_dipu", "-lc10", "-ltorch_cpu"]
    return compiled([*words, _HERE / "client.cpp", *flags, *link_words, f"-Wl,-rpath-link,{root}"], "libclient.so")


@pytest.fixture(scope="session")
def client(variables: dict[str, str]) -> Path:
    """The program, linked as strictly as some systems do."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    return build(variables, "-Wl,--as-needed", "-Wl,-z,now")


@pytest.fixture
def run(client: Path, libraries: Path) -> Callable[..., Any]:
    """What a program that has loaded the client prints, as JSON."""

    def run(program: str, **more: str) -> Any:
        done = processes.run_python("-c", _LOAD.format(client=str(client)) + program, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_the_vendor_runs_what_the_client_calls(run: Callable[..., Any]) -> None:
    found = run("""
boxes = torch.tensor([[6., 3, 8, 7], [3, 6, 9, 11], [3, 7, 10, 12], [1, 4, 13, 7]], device="dipu")
scores = torch.tensor([.6, .9, .7, .2], device="dipu")
kept = c.nms(boxes, scores, .3, 0)
x = torch.arange(4, dtype=torch.float32, device="dipu")
print(json.dumps({
    "kept": kept.tolist(), "device": str(kept.device), "sum": c.add_number(x, 2.5, 2).tolist(),
    "integers": c.add_number(x.long(), 3, 1).tolist(), "views": c.add_number(x[::2], 1, 1).tolist(),
    "host": [c.is_on_host(x), c.is_on_host(x.cpu())], "absent": [c.is_absent(None), c.is_absent(x)],
    "fallbacks": torch.dipu.fallback.report(),
}))
""")
    assert found == {
        "kept": [1, 0, 3],
        "device": "dipu:0",
        "sum": [5.0, 6.0, 7.0, 8.0],
        "integers": [3, 4, 5, 6],
        "views": [1.0, 3.0],
        "host": [False, True],
        "absent": [True, False],
        "fallbacks": [],
    }


def test_tensors_that_a_function_has_no_use_for_may_be_empty(run: Callable[..., Any]) -> None:
    found = run("""
image = torch.tensor([[[[1., 2], [3, 4]]]], device="dipu")
print(json.dumps(c.roi_align(image, torch.tensor([[0., 0, 0, 1, 1]], device="dipu"), 2).tolist()))
""")
    assert found == [[[[1.0, 1.25], [1.5, 1.75]]]]


def test_a_function_that_the_vendor_lacks_is_null_and_others_keep_their_names(run: Callable[..., Any]) -> None:
    found = run("""
import ctypes
try:
    whole = ctypes.CDLL(None).diopiNmsMmcv is not None
except AttributeError:
    whole = False
print(json.dumps({"unknown": c.has_unknown_function(), "vendor": c.vendor(), "global": whole}))
""")
    assert found == {"unknown": False, "vendor": "DROPLET", "global": False}


def test_the_current_stream_of_each_device_is_the_clients(run: Callable[..., Any]) -> None:
    found = run("""
before = c.stream(-1)
stream = torch.dipu.Stream()
with torch.dipu.stream(stream):
    inside, y = c.stream(0), c.add_number(torch.ones(2, device="dipu"), 1, 1)
stream.synchronize()
far = torch.ones(2, device="dipu:1")
with torch.dipu.device(1):
    there = c.stream(-1)
    z = c.add_number(far, 2, 1)
print(json.dumps([
    inside == stream.native_handle, before == c.stream(0), inside != before, there == c.stream(1), there != before,
    y.tolist(), z.tolist(), str(z.device),
]))
""")
    assert found == [True, True, True, True, True, [2.0, 2.0], [3.0, 3.0], "dipu:1"]


def test_what_has_no_form_in_the_contract_is_an_error(run: Callable[..., Any]) -> None:
    found = run("""
errors = []
for call in (lambda: c.add_number(torch.ones(2, device="dipu"), 1j, 1), lambda: c.stream(7)):
    try:
        call()
    except RuntimeError as error:
        errors.append(str(error).splitlines()[0])
print(json.dumps(errors))
""")
    assert found == [
        "a complex number has no form in the contract",
        "there is no device dipu:7; this machine has 2 of them",
    ]


def test_the_folder_of_the_client_may_be_in_the_library_path(
    run: Callable[..., Any], variables: dict[str, str]
) -> None:
    program = "print(json.dumps(c.add_number(torch.ones(2, device='dipu'), 1, 1).tolist()))"
    assert run(program, LD_LIBRARY_PATH=variables["DIPU_ROOT"]) == [2.0, 2.0]


def test_a_vendor_library_of_another_name_serves_no_client(client: Path, variables: dict[str, str]) -> None:
    flags = ["-std=c++17", "-shared", "-fPIC", "-DFAKE_FORM=1", f"-I{ROOT / 'generated' / 'include'}"]
    fake = compiled(["g++", *flags, ROOT / "tests" / "torch" / "fake_vendor.cpp"], "libfake.so")
    # Even then no other vendor's functions are taken.
    done = processes.run_python(
        "-c",
        _LOAD.format(client=str(client)),
        DIPU_VENDOR_LIBRARY=str(fake),
        LD_LIBRARY_PATH=variables["DIPU_ROOT"],
    )
    assert "libdiopi_impl.so: cannot open shared object file" in done.stderr


@pytest.fixture(scope="session")
def installed(libraries: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as an installation lays it out, with droplet's libraries."""
    import torch

    backend = ROOT / "build" / f"torch_dipu-{torch.__version__.partition('+')[0]}"
    if not (backend / "cmake_install.cmake").exists() or shutil.which("cmake") is None:
        pytest.skip("the PyTorch backend is not built by itself")
    place = tmp_path_factory.mktemp("installed")
    command = ["cmake", "--install", str(backend), "--component", "torch_dipu", "--prefix", str(place)]
    subprocess.run(command, check=True, capture_output=True)
    shutil.copytree(ROOT / "python" / "torch_dipu" / "torch_dipu", place / "torch_dipu", dirs_exist_ok=True)
    for library in libraries.glob("lib*_*.so"):
        if library.name != "libtorch_dipu.so":
            shutil.copy(library, place / "torch_dipu")
    return place


def run_installed(installed: Path, program: str) -> str:
    """What a program prints for which the installed package is the only torch_dipu."""
    # A checkout's editable installation finds its package before any path does.
    first = f"""
import sys
sys.meta_path = [finder for finder in sys.meta_path if not type(finder).__name__.startswith("ScikitBuild")]
sys.path.insert(0, {str(installed)!r})
"""
    removed = {"DIPU_LIBRARY_DIR", "DIPU_VENDOR", "PYTHONPATH"}
    variables = {name: value for name, value in os.environ.items() if name not in removed}
    variables["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    command = [sys.executable, "-c", first + program]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_package_brings_headers_and_libraries(installed: Path) -> None:
    program = (
        "import runpy; sys.argv[1:] = ['--client-environment']; runpy.run_module('torch_dipu', run_name='__main__')"
    )
    variables = environment(run_installed(installed, program))
    package = installed / "torch_dipu"
    assert {name: value for name, value in variables.items() if name != "PYTORCH_DIR"} == {
        "DIPU_ROOT": str(package / "client"),
        "DIPU_PATH": str(package / "client"),
        "DIOPI_PATH": str(package / "client"),
        "VENDOR_INCLUDE_DIRS": str(package / "client" / "include"),
    }
    program = _LOAD.format(client=str(build(variables)))
    program += "print(torch_dipu.__file__, c.add_number(torch.ones(2, device='dipu'), 1, 1).tolist())"
    assert run_installed(installed, program) == f"{package / '__init__.py'} [2.0, 2.0]\n"


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "libtorch_dipu.so").touch()
    done = processes.run_python(
        "-m",
        "torch_dipu",
        "--client-environment",
        DIPU_LIBRARY_DIR=str(tmp_path),
        TORCH_DEVICE_BACKEND_AUTOLOAD="1",
    )
    missing = tmp_path / "client" / "libtorch_dipu.a"
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"error: torch_dipu is not built for C++ clients: there is no {missing}\n",
    )
