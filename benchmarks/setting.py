"""Where a benchmark finds the build that it measures, and how it compiles a program against it."""

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Setting:
    """The vendor and its build folder."""

    vendor: str  # e.g. "droplet"
    build: Path  # e.g. build/droplet
    compiler: str = os.environ.get("CXX", "g++")

    @property
    def libraries(self) -> Path:
        """The folder of libdiopi_impl.so, libdiopirt.so and libtorch_dipu.so."""
        return self.build.resolve() / "lib"

    @cached_property
    def torch(self) -> Path:
        """torch's folder, found without importing torch."""
        spec = find_spec("torch")
        assert spec is not None and spec.origin is not None, "torch is not installed"
        return Path(spec.origin).parent

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to load this build's backend, whatever is installed."""
        loads = {"DIPU_LIBRARY_DIR": str(self.libraries), "OMP_NUM_THREADS": "1"}
        return {name: value for name, value in os.environ.items() if name != "TORCH_DEVICE_BACKEND_AUTOLOAD"} | loads

    def program(self, name: str, *others: str, with_torch: bool) -> Path:
        """Compiles programs/<name>.cpp and other sources of the project, if the program is older, and returns it."""
        folder = self.build.resolve() / "benchmarks"
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / name
        sources = (HERE / "programs" / f"{name}.cpp", *(ROOT / other for other in others))
        inputs = (*sources, HERE / "programs" / "rounds.h", *self.libraries.glob("*.so"))
        if not program.exists() or program.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
            options = self.torch_options if with_torch else self.plain_options
            command = [self.compiler, "-O2", "-Wall", "-Wextra", "-Werror", *_includes(), *map(str, sources)]
            subprocess.run([*command, "-o", str(program), *options, f"-Wl,-rpath,{self.libraries}"], check=True)
        return program

    @property
    def torch_options(self) -> list[str]:
        """How a program includes and links torch and the backend."""
        include, library = self.torch / "include", self.torch / "lib"
        found = ["-std=c++20", "-DAT_PER_OPERATOR_HEADERS"]
        found += ["-isystem", str(include), "-isystem", str(include / "torch" / "csrc" / "api" / "include")]
        found += [f"-L{self.libraries}", "-ltorch_dipu", f"-L{library}", "-ltorch", "-ltorch_cpu", "-lc10"]
        return [*found, f"-Wl,-rpath,{library}"]

    @property
    def plain_options(self) -> list[str]:
        """How a program links the vendor library and the runtime without a framework."""
        return ["-std=c++17", f"-L{self.libraries}", "-Wl,--no-as-needed", "-ldiopirt", "-ldl"]

    def output(self, command: list[str], **variables: str) -> str:
        """What a command prints, with more environment variables; its errors pass through."""
        environment = self.environment | variables
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    def python(self, *arguments: str, **variables: str) -> str:
        """What this Python prints for the arguments."""
        return self.output([sys.executable, *arguments], **variables)


def _includes() -> list[str]:
    folders = ("generated/include", "runtime_cpp", "runtime_cpp/torch", "benchmarks/programs")
    return [f"-I{ROOT / folder}" for folder in folders]
