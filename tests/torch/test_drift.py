"""What the backend says at run time of operators that were left out because torch declares them otherwise."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent

_PROGRAM = """
import json
torch.geqrf(torch.eye(2, device="dipu"))
report = {row.operator: row.cause for row in torch.dipu.fallback.report()}
print(json.dumps([torch.dipu.debug.drifted_operators(), report]))
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++")
    library = tmp_path_factory.mktemp("drifted") / "libdrifted.so"
    flags = ["-std=c++20", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, str(HERE / "drifted.cpp"), "-o", str(library)], check=True)
    return library


def report(droplet: Run, preloaded: str = "") -> tuple[dict[str, str], dict[str, str]]:
    """What is listed as drifted, and the causes of fallbacks by operator."""
    done = droplet(_PROGRAM, LD_PRELOAD=preloaded)
    assert done.returncode == 0, done.stderr
    listed, causes = json.loads(done.stdout.splitlines()[-1])
    return listed, causes


def test_an_operator_that_drifted_is_listed_and_is_a_cause_of_fallbacks(droplet: Run, drifted: Path) -> None:
    listed, causes = report(droplet, str(drifted))
    assert listed == {"geqrf": "torch 2.14 has no such operator"}
    assert causes["aten::geqrf"] == "drifted: torch 2.14 has no such operator"


def test_on_a_supported_release_nothing_has_drifted_but_what_torch_removed(droplet: Run) -> None:
    listed, causes = report(droplet)
    assert set(listed) <= {"cholesky", "cholesky.out"}  # which torch removed in 2.14
    assert causes["aten::geqrf"] == "no kernel"
