"""What `make matrix` runs for each release, what it tells, and its exit code."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tools import matrix

ROOT = Path(__file__).resolve().parents[3]
STUB = """
import sys
release = sys.argv[-1].removeprefix("TORCH=")
print(sys.argv[1:])
print("==== 3 failed, 8 passed in 1.5s ====" if release == "2.12" else "8 passed, 1 skipped in 2.01s (0:00:02)")
sys.exit(2 if release == "2.12" else 0)
"""


def matrix_of(tmp_path: Path, *words: str, stub: str = STUB) -> subprocess.Popen[str]:
    (tmp_path / "make.py").write_text(stub)
    program = (
        "import sys; from pathlib import Path; from tools import matrix; "
        f"matrix.FOLDER = matrix.ROOT = Path({str(tmp_path)!r}); sys.exit(matrix.main())"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, *words, "--make", sys.executable, str(tmp_path / "make.py")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_each_release_has_an_environment_and_its_result(tmp_path: Path) -> None:
    process = matrix_of(tmp_path, "2.11", "2.12")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert out.splitlines() == [
        "1/2 torch 2.11: ./2.11.log",
        "    passed in 0.0 min: 8 passed, 1 skipped",
        "2/2 torch 2.12: ./2.12.log",
        "    FAILED (2) in 0.0 min: 3 failed, 8 passed",
    ]
    log = (tmp_path / "2.11.log").read_text()
    assert log.splitlines()[0] == "['test', 'VENV=build/matrix/torch-2.11', 'TORCH=2.11']"


def test_every_release_with_constraints_is_supported() -> None:
    assert matrix.RELEASES == ("2.11", "2.12", "2.13", "2.14", "2.15")


def test_a_release_without_constraints_is_refused(tmp_path: Path) -> None:
    process = matrix_of(tmp_path, "2.10")
    _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "there are no constraints for torch 2.10; choose of 2.11, 2.12, 2.13, 2.14, 2.15" in error


def test_ctrl_c_ends_with_one_line(tmp_path: Path) -> None:
    process = matrix_of(tmp_path, "2.11", stub=f"import time; open({str(tmp_path / 'up')!r}, 'w'); time.sleep(60)")
    while not (tmp_path / "up").exists():
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130 and error == "interrupted\n"
