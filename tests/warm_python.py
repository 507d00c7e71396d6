"""A Python that has imported torch and then becomes the program that a test asks for, each time in a fork of its own.

Importing torch takes a second of each program that a test starts, far more than most of them compute. What runs is what
`python WORDS...` runs: module, script or text as `__main__`, its own environment, folder and output, its exit as usual.
Variables that torch or the loader read while torch is imported cannot be changed so late, and below the stack of a
program lies that of this file; see reads_early().
"""

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_EARLY = (
    "LD_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "PYTHON",
    "TORCH_",
    "PYTORCH_",
    "TORCHINDUCTOR_",
    "MALLOC_",
    "DIPU_MEM_CHECK",
)
_BACKENDS = "TORCH_DEVICE_BACKEND_AUTOLOAD"
_ASKED = {_BACKENDS: "0"}  # how torch is imported here; a program that wants backends gets them before it begins


def reads_early(variables: dict[str, str]) -> bool:
    """Whether one of the variables counts before the program begins, or asks for stacks, which begin elsewhere."""
    return any(name.startswith(_EARLY) and name not in _ASKED for name in variables)


class Warm:
    """The interpreter that waits, with `environment` as it was when it was started."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [sys.executable, str(Path(__file__).resolve())]
        self._process = subprocess.Popen(
            command, env=environment | _ASKED, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._process.communicate)  # which ends it

    def run(
        self, words: tuple[str, ...], folder: Path | None, timeout: float, variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """As subprocess.run() does it. Raises subprocess.TimeoutExpired."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            asked = {"words": words, "folder": str(folder or Path.cwd()), "environment": os.environ | variables}
            asked |= {"out": _open_by_others(out.fileno()), "err": _open_by_others(err.fileno()), "timeout": timeout}
            assert self._process.stdin is not None and self._process.stdout is not None
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            status = json.loads(self._process.stdout.readline())
            if status is None:
                raise subprocess.TimeoutExpired(words, timeout)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read())
        return subprocess.CompletedProcess([sys.executable, *words], status, *texts)


def _open_by_others(descriptor: int) -> str:
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _serve() -> dict[str, Any] | None:
    """Answers requests; returns in a fork what that shall become, and None when nobody asks any more."""
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            return asked
        signal.signal(signal.SIGALRM, lambda *_, child=child: os.kill(child, signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, asked["timeout"])
        _, status = os.waitpid(child, 0)
        late = signal.setitimer(signal.ITIMER_REAL, 0)[0] == 0
        print(json.dumps(None if late else os.waitstatus_to_exitcode(status)), flush=True)
    return None


def _become(asked: dict[str, Any]) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    for descriptor, path in ((0, os.devnull), (1, asked["out"]), (2, asked["err"])):
        opened = os.open(path, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)
        os.dup2(opened, descriptor)
        os.close(opened)
    if torch._is_device_backend_autoload_enabled():
        torch._import_device_backends()
    how, *words = asked["words"]
    match how:
        case "-m":
            sys.path[0] = asked["folder"]
            sys.argv = words
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        case "-c":
            sys.path[0] = ""
            sys.argv = ["-c", *words[1:]]
            exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
        case script:
            sys.path[0] = str(Path(script).resolve().parent)
            sys.argv = [script, *words]
            runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    import torch  # so that no program has to

    program = _serve()
    if program is not None:
        _become(program)
