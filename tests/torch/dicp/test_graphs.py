"""Compiled graphs in torch's caches: found again by another process, never one that depends on something else."""

import json
import os
import pickletools
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ROOT, run_python

# Trains a model of two layers with random zeros, and says what it computed and what was taken from where. The loss of
# classes puts a constant tensor into its graph.
PROGRAM = """
import json
import os
import sys
import torch
from torch import nn
from torch._dynamo.utils import counters

ROWS, DYNAMIC = json.loads(sys.argv[1])
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.25), nn.LayerNorm(16), nn.Linear(16, 4)).to("dipu")
x, target = torch.randn(ROWS, 8).to("dipu"), torch.arange(ROWS).remainder(4).to("dipu")
if DYNAMIC:
    torch._dynamo.mark_dynamic(x, 0)
    torch._dynamo.mark_dynamic(target, 0)

def loss(x, target):
    return nn.functional.cross_entropy(model(x), target)

mode = os.environ.get("MODE")
run = torch.compile(loss, backend="diopi", mode=mode)
for _ in range(5 if mode else 1):
    torch.manual_seed(4)
    model.zero_grad()
    value = run(x, target)
    value.backward()
torch.compiler.save_cache_artifacts()
from dicp import explain
print(json.dumps({
    "words": [b"".join(p.grad.cpu().numpy().tobytes() for p in model.parameters()).hex(), value.item()],
    "hits": counters["aot_autograd"]["autograd_cache_hit"],
    "misses": counters["aot_autograd"]["autograd_cache_miss"],
    "packages": counters["dynamo_cache"]["dynamo_cache_hit"],
    "frames": counters["frames"]["total"],
    "compiled": [report.phase for report in explain.reports() if report.graph is not None],
    "kept": [report.phase for report in explain.reports() if report.graph is None],
    "launched": [(report.executable.replays() or {}).get("launched", 0) for report in explain.reports()],
}))
"""
BOTH = ["forward", "backward"]


@dataclass
class Caches:
    """Folders of the caches that processes share."""

    folder: Path
    program: Path
    programs: Path  # built libraries
    variables: dict[str, str] = field(default_factory=dict)

    def words(self, rows: int, dynamic: bool) -> list[str]:
        return [str(self.program), json.dumps([rows, dynamic])]

    def run(self, rows: int = 6, *, dynamic: bool = False, **more: str) -> dict[str, Any]:
        """What a process that trains says."""
        done = run_python(*self.words(rows, dynamic), **self.environment | more)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    @property
    def environment(self) -> dict[str, str]:
        mine = {"DICP_CACHE": str(self.programs), "TORCHINDUCTOR_CACHE_DIR": str(self.folder / "torch")}
        return {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1", "DICP_CACHE_GRAPHS": "1", **mine, **self.variables}

    def entries(self) -> list[Path]:
        return sorted(path for path in (self.folder / "torch").glob("**/*") if path.is_file())


@pytest.fixture
def caches(compiling: Path, programs: Path, tmp_path: Path) -> Caches:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    return Caches(tmp_path, program, programs)


def test_another_process_finds_the_graphs_and_computes_the_same(caches: Caches) -> None:
    plain = caches.run(DICP_CACHE_GRAPHS="0")
    assert not caches.entries() and plain["hits"] == plain["misses"] == 0
    first = caches.run()
    assert (first["hits"], first["misses"], first["compiled"], first["kept"]) == (0, 1, BOTH, [])
    second = caches.run()
    assert (second["hits"], second["misses"], second["compiled"], second["kept"]) == (1, 0, [], BOTH)
    assert second["words"] == first["words"] == plain["words"]
    # A program whose library is gone is built again.
    assert caches.run(DICP_CACHE=str(caches.folder / "empty")) == second
    # Other sizes are another graph.
    assert caches.run(rows=7)["compiled"] == BOTH


def test_what_is_recorded_is_kept_apart_and_recorded_again(caches: Caches) -> None:
    plain = caches.run(MODE="reduce-overhead", DICP_CACHE_GRAPHS="0")
    first, second = caches.run(MODE="reduce-overhead"), caches.run(MODE="reduce-overhead")
    assert (first["hits"], first["compiled"], second["hits"], second["kept"]) == (0, BOTH, 1, BOTH)
    assert second["words"] == first["words"] == plain["words"]
    assert second["launched"] == first["launched"] == plain["launched"] and all(second["launched"])
    other = caches.run()
    assert (other["hits"], other["compiled"], other["launched"]) == (0, BOTH, [0, 0])


@pytest.mark.deep("matrix", "graphs with fixed sizes; programs with symbols in test_models.py")
def test_sizes_that_are_symbols_are_kept_as_symbols(caches: Caches) -> None:
    expected = caches.run(rows=9, DICP_CACHE_GRAPHS="0")["words"]
    assert caches.run(rows=6, dynamic=True)["compiled"]
    found = caches.run(rows=9, dynamic=True)
    again = caches.run(rows=9, dynamic=True)
    assert not again["compiled"] and again["words"] == found["words"]
    assert found["words"][1] == pytest.approx(expected[1], rel=1e-6)


def own_libraries(libraries: Path, folder: Path) -> Path:
    """The libraries in another folder, with a table that says the same in another text."""
    copy = folder / "lib"
    (copy / "compiler").mkdir(parents=True)
    for path in libraries.glob("*.so"):
        (copy / path.name).symlink_to(path)
    for table in ("target.json", "patterns.json"):
        shutil.copy(libraries / "compiler" / table, copy / "compiler")
    return copy


def changed_table(libraries: Path, folder: Path) -> dict[str, str]:
    text = (libraries / "compiler" / "operators.json").read_text()
    (folder / "lib" / "compiler" / "operators.json").write_text(text + "\n")
    return {}


def changed_compiler(libraries: Path, folder: Path) -> dict[str, str]:
    """dicp with a line more."""
    copy = folder / "packages"
    shutil.copytree(ROOT / "python" / "dicp", copy)
    with (copy / "dicp" / "passes" / "fuse.py").open("a") as file:
        file.write("# another compiler\n")
    return {"PYTHONPATH": str(copy)}


ALONE = pytest.mark.deep("matrix", "the same with packages, which look for programs by the same keys")


@pytest.mark.parametrize("packages", [pytest.param("0", marks=ALONE), "1"])
def test_a_change_of_what_programs_depend_on_is_a_miss(
    caches: Caches, libraries: Path, tmp_path: Path, packages: str
) -> None:
    """Also where torch has a package of the whole function, whose key says nothing of libraries and compilers."""
    folder = own_libraries(libraries, tmp_path)
    shutil.copy(libraries / "compiler" / "operators.json", folder / "compiler")
    caches.variables = {"DIPU_LIBRARY_DIR": str(folder), "TORCH_CACHING_PRECOMPILE": packages}
    first = caches.run()
    for change in (changed_compiler, changed_table):
        changed = caches.run(**change(libraries, tmp_path))
        assert changed["compiled"] == BOTH and not changed["kept"] and changed["words"] == first["words"]
        assert changed["packages"] == int(packages)


def test_a_package_does_without_dynamo(caches: Caches) -> None:
    caches.variables = {"TORCH_CACHING_PRECOMPILE": "1", "DICP_CACHE_GRAPHS": "0"}
    first, second = caches.run(), caches.run()
    assert first["compiled"] == BOTH and first["frames"] == 1
    assert second["kept"] == BOTH and second["frames"] == 0 and second["packages"] == 1
    assert second["words"] == first["words"]


@pytest.mark.deep("races", "one process after another; half an entry is none")
def test_processes_that_fill_the_cache_at_once_do_not_disturb_each_other(caches: Caches) -> None:
    environment = os.environ | caches.environment
    words = [sys.executable, *caches.words(6, False)]
    both = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    found = [json.loads(process.communicate()[0].splitlines()[-1])["words"] for process in both]
    last = caches.run()
    assert last["kept"] == BOTH and [last["words"]] * 2 == found


def pickled_of_dicp(entry: Path) -> set[str]:
    """What a pickle names of this package."""
    names: set[str] = set()
    texts: list[Any] = []
    for operation, value, _ in pickletools.genops(entry.read_bytes()):
        if operation.name in ("SHORT_BINUNICODE", "BINUNICODE"):
            texts.append(value)
        if operation.name == "STACK_GLOBAL":
            names.add(".".join(texts[-2:]))
    return {name for name in names if name.startswith("dicp")}


def test_an_entry_has_a_text_of_dicp_and_half_of_one_is_none(caches: Caches) -> None:
    first = caches.run()
    (entry,) = caches.entries()
    assert pickled_of_dicp(entry) == {"dicp.graphs.KeptProgram"}
    entry.write_bytes(entry.read_bytes()[:1000])
    again = caches.run()
    assert again["compiled"] == BOTH and again["words"] == first["words"]


def test_who_looks_at_graphs_gets_graphs(caches: Caches) -> None:
    caches.run(DICP_CHECK="1")
    assert not caches.entries()
