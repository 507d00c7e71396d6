"""What the demo prints, which stages it runs in which order, and how it ends."""

import importlib.util
import io
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console

ROOT = Path(__file__).resolve().parents[3]

TABLE = """\
50 steps of each model, float32, the same seed on both devices

           loss on    loss on   relative   native   fell   step on    step on
  model       dipu        CPU      error      ops   back      dipu        CPU
 ─────────────────────────────────────────────────────────────────────────────
  MLP     0.017678   0.017678    0.0e+00       21      0    0.8 ms     1.0 ms
  LLaMA   0.732300   0.732233    9.2e-05       38      1   14.6 ms   123.0 ms

"""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """demo/demo.py; its neighbors can be imported as when it runs."""
    monkeypatch.syspath_prepend(str(ROOT / "demo"))
    spec = importlib.util.spec_from_file_location("demo_program", ROOT / "demo" / "demo.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--vendor", "chip", "--jobs", "3"])
    return found


def comparison(name: str, dipu: float, cpu: float, fallen: int, times: tuple[float, float]):
    from comparison import Comparison
    from train import Run

    runs = (Run((2.0, 1.0, loss), (seconds,) * 3) for loss, seconds in zip((dipu, cpu), times, strict=True))
    return Comparison(name, *runs, native=38 if fallen else 21, fallen=fallen)


def test_the_table_in_eighty_columns(module: ModuleType) -> None:
    from comparison import table

    rows = (
        comparison("MLP", 0.017678, 0.017678, 0, (0.0008, 0.001)),
        comparison("LLaMA", 0.7323, 0.732233, 1, (0.0146, 0.123)),
    )
    console = Console(file=io.StringIO(), width=80)
    console.print(table(rows, 50))
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "\n".join(line.rstrip() for line in lines) + "\n" == TABLE


def test_what_is_good(module: ModuleType) -> None:
    assert comparison("MLP", 0.5, 0.5, 0, (1, 1)).good
    assert not comparison("MLP", 0.5, 0.501, 0, (1, 1)).good  # 2e-3 at the end
    assert not comparison("MLP", 0.5, 0.5, 1, (1, 1)).good


@pytest.fixture
def stages(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the work of each stage by its name in a list."""
    done: list[str] = []

    def noted(name: str, result: object) -> object:
        done.append(name)
        return result

    def trained(tasks, steps, console):
        done.append(f"train {' '.join(tasks)}")
        return [comparison(name, 0.5, 0.5, 0, (1, 1)) for name in tasks]

    monkeypatch.setattr(module, "_built", lambda vendor, jobs: noted(f"build {vendor} {jobs}", True))
    monkeypatch.setattr(module, "_tasks", lambda vendor: ("MLP", "ResNet", "LLaMA"))
    monkeypatch.setattr(module, "_trained", trained)
    monkeypatch.setattr(module, "_conformance", lambda *_: noted("conformance", True))
    return done


def test_the_first_model_is_trained_before_the_others_and_the_sample(
    module: ModuleType, stages: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert module.main() == 0
    assert stages == ["build chip 3", "train MLP", "train ResNet LLaMA", "conformance"]
    assert capsys.readouterr().out.endswith("all conformance cases: make conformance IMPL=chip\n")


@pytest.mark.parametrize("wrong", ["_built", "_told", "_conformance"])
def test_a_stage_that_is_wrong_ends_with_1(
    module: ModuleType, stages: list[str], monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    monkeypatch.setattr(module, wrong, lambda *_: False)
    assert module.main() == 1


def test_an_interrupt_ends_with_130_and_no_traceback(
    module: ModuleType, stages: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_built", lambda *_: module._finished([sys.executable, "-c", "raise SystemExit(130)"]))
    assert module.main() == 130
    assert capsys.readouterr().err == "interrupted; 'make demo' goes on from what is built\n"


def test_a_program_that_is_interrupted_ends_in_its_own_way(tmp_path: Path) -> None:
    slow = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: time.sleep(0.6); print('whole', flush=True)\n"
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'demo')!r}); import demo\n"
        f"try: print('waits', flush=True); demo._finished([sys.executable, '-c', {slow!r}])\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    command = ["timeout", "--signal", "INT", "2", sys.executable, "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.stdout == "waits\nwhole\ninterrupted\n"
