"""What a process pays for its first compiled step: with nothing kept, with dicp's programs, and with torch's caches."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from figures import Report
from setting import HERE, Setting

ABOUT = "the first step of the demo's LLaMA in a new process, beside inductor with its own caches (peer)"
ROUNDS = 5


@dataclass(frozen=True)
class Mode:
    """A compiler, and what an earlier process left for it."""

    name: str
    device: str
    backend: str
    kept: bool  # an earlier process ran
    variables: dict[str, str]
    target: float | None = None  # seconds


PACKAGES = {"TORCH_CACHING_PRECOMPILE": "1"}
MODES = (
    Mode("dipu, nothing kept", "dipu", "diopi", False, {}, 5.0),
    Mode("dipu, programs kept", "dipu", "diopi", True, {}, 0.3),
    Mode("dipu, AOTAutograd's graphs kept", "dipu", "diopi", True, {"DICP_CACHE_GRAPHS": "1"}, 0.3),
    Mode("dipu, torch's packages kept", "dipu", "diopi", True, PACKAGES, 0.3),
    Mode("CPU inductor, nothing kept", "cpu", "inductor", False, {}),
    Mode("CPU inductor, its graphs kept", "cpu", "inductor", True, {}),
    Mode("CPU inductor, torch's packages kept", "cpu", "inductor", True, PACKAGES),
)


def measure(setting: Setting) -> Report:
    """The modes take turns, a process each."""
    report = Report("compile_time", ABOUT)
    taken: dict[str, list[dict[str, float]]] = {mode.name: [] for mode in MODES}
    with tempfile.TemporaryDirectory(prefix="compile-time-") as name:
        for mode in MODES:
            if mode.kept:
                _run(setting, mode, _kept(Path(name), mode))
        for round_number in range(ROUNDS):
            for mode in MODES:
                folder = _kept(Path(name), mode) if mode.kept else Path(name) / f"{mode.backend}-{round_number}"
                taken[mode.name].append(_run(setting, mode, folder))
    imports = [found["imports"] for runs in taken.values() for found in runs]
    report.add("the imports of torch.compile, in each process", "s", imports)
    for mode in MODES:
        runs = taken[mode.name]
        figure = report.add(mode.name, "s", [found["wall"] for found in runs])
        report.add(f"{mode.name}, processors", "s", [found["processor"] for found in runs])
        if mode.target is not None:
            report.compare(f"{mode.name}: first step", figure.median, "s", f"{mode.target:g} or less")
    return report


def _kept(folder: Path, mode: Mode) -> Path:
    return folder / f"kept-{MODES.index(mode)}"


def _run(setting: Setting, mode: Mode, folder: Path) -> dict[str, float]:
    """Python keeps what it compiles of modules, as it does unless it is told not to."""
    caches = {
        "DICP_CACHE": str(folder / "dicp"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch"),
        "PYTHONDONTWRITEBYTECODE": "",
    }
    words = (str(HERE / "compile_time_process.py"), mode.device, mode.backend)
    found: dict[str, float] = json.loads(setting.python(*words, **caches, **mode.variables).splitlines()[-1])
    return found
