"""Plants faults in the portable kernels, one at a time; the conformance suite must see each of them.

A mutant is one source with one line changed, compiled by the build's own command, linked with the build's other
objects. `DIOPI_BUILD` names another build than build/droplet; `pytest -s` prints the score.
"""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("DIOPI_BUILD", ROOT / "build" / "droplet"))
PLAN = ROOT / "generated" / "droplet" / "conformance" / "plan.json"
KERNELS = ROOT / "runtime_cpp" / "kernels"


@dataclass(frozen=True, slots=True)
class Mutant:
    """One line of one source, before and after, and the functions that it serves."""

    kind: str
    source: str  # ex) "softmax.cpp"
    before: str
    after: str
    functions: str  # a pattern


MUTANTS = (
    Mutant(
        "off by one",
        "softmax.cpp",
        "sum += power;",
        "if (k > 0) sum += power;",
        "diopi*Softmax*",
    ),
    Mutant("wrong gradient", "softmax.cpp", "gradient(k) * result(k)", "gradient(k)", "diopi*Softmax*"),
    Mutant("wrong reduction", "nll_loss.cpp", "reduction == ReductionMean});", "true});", "diopiNLLLoss*"),
    Mutant("lost epsilon", "layer_norm.cpp", "squares / count + eps", "squares / count", "diopi*Norm*"),
    Mutant("padding not counted", "pooling.cpp", "if (count_padding)", "if (!count_padding)", "diopiAvgPool2d*"),
    Mutant("dropped tail", "slice.cpp", "(last - first - 1) / step + 1", "(last - first) / step", "diopiS*"),
    Mutant(
        "unstable ties",
        "sort.cpp",
        "right < count && order.overtakes(from[right], from[left])",
        "right < count && !order.overtakes(from[left], from[right])",
        "diopi*ort*",
    ),
    Mutant("scale not applied", "embedding.cpp", "A(1) / static_cast<A>(counts[row])", "A(1)", "diopiEmbedding*"),
    Mutant("swapped settings", "optimizer.cpp", "C(1.0 - settings.beta1)", "C(settings.beta1)", "diopiAdam*"),
)


def commands() -> list[list[str]]:
    """What Ninja runs to make the vendor library, each command as words."""
    lines = subprocess.run(
        ["ninja", "-C", str(BUILD), "-t", "commands", "lib/libdiopi_impl.so"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        check=True,
    ).stdout.splitlines()
    return [[word for word in shlex.split(line) if word not in (":", "&&")] for line in lines]


def built() -> bool:
    library = BUILD / "lib" / "libdiopi_impl.so"
    return library.exists() and PLAN.exists() and (BUILD / "build.ninja").exists()


pytestmark = pytest.mark.skipif(not built(), reason="droplet is not built with Ninja")


def library_of(mutant: Mutant, folder: Path) -> Path:
    """The folder of the mutant's libraries."""
    source = KERNELS / mutant.source
    text = source.read_text(encoding="utf-8")
    assert text.count(mutant.before) == 1, f"'{mutant.before}' is not one place in {mutant.source}; choose another"
    changed = folder / mutant.source
    changed.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    every = commands()
    compile_ = next(c for c in every if str(source) in c)
    original = compile_[compile_.index("-o") + 1]
    object_ = folder / "mutant.o"
    words = [{str(source): str(changed), original: str(object_)}.get(w, w) for w in compile_]
    dependencies = {i for i, w in enumerate(words) if w in ("-MF", "-MT")}
    kept = [w for i, w in enumerate(words) if not {i, i - 1} & dependencies and w not in ("-MD", "-O3")]
    subprocess.run([*kept, "-w", "-O1"], cwd=BUILD, check=True)
    link = next(c for c in every if "lib/libdiopi_impl.so" in c and "-shared" in c)
    target = folder / "libdiopi_impl.so"
    swapped = [{original: str(object_), "lib/libdiopi_impl.so": str(target)}.get(w, w) for w in link]
    subprocess.run(swapped, cwd=BUILD, check=True)
    for name in ("libdiopirt.so", "libdroplet_rt.so"):
        (folder / name).symlink_to((BUILD / "lib" / name).resolve())
    return folder


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.source}-{m.kind}".replace(" ", "-"))
def test_the_suite_kills_the_mutant(mutant: Mutant, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    command = [sys.executable, "-m", "diopi_conformance.cli", "run", "--vendor", "droplet", "--out", str(out)]
    options = ["--libraries", str(library_of(mutant, tmp_path)), "--function", mutant.functions]
    found = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert out.exists(), found.stderr
    counts = json.loads(out.read_text())["counts"]
    print(f"{mutant.source}, {mutant.kind}: {counts}")
    assert found.returncode == 1
    assert counts.get("fail", 0) + counts.get("crash", 0) > 0
