"""How a vendor's programs are built: which compiler, with which flags, headers and libraries."""

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from dicp import fingerprint
from dicp.emit.source import Emitted, emit
from dicp.operators import Table, table, whole
from dicp.patterns.table import Patterns, pattern_table
from dicp.program import Program, View
from diopigen.atomic import write_text
from diopigen.records.codec import record_of
from diopigen.records.target import TargetFile


class BuildFailed(Exception):
    """The compiler refused a program; the message has its words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What every vendor with a launcher has without a line of its own: the build writes it beside the libraries.

    A vendor with a compiler of its own derives a class and overrides one of `emit`, `command`, `build` and `load`; what
    of a program depends on more than `key` says is a matter for `key`, too.
    """

    vendor: str  # e.g. "droplet"
    folder: Path  # of the vendor's libraries
    compiler: str  # e.g. "/usr/bin/c++"
    flags: tuple[str, ...]
    include: tuple[str, ...]
    link: tuple[str, ...]
    suffix: str  # of a source: ".cpp", ".cu"
    kernels: tuple[str, ...] = ()  # the call that compiles kernels, where `compiler` compiles all else

    @classmethod
    def read(cls, folder: Path) -> "Target":
        """The target of the libraries in `folder`. Raises FileNotFoundError, and NoTable where it is damaged."""
        path = folder / "compiler" / "target.json"
        with whole(path):
            text = path.read_text(encoding="utf-8").replace("@FOLDER@", json.dumps(str(folder))[1:-1])
            found = record_of(TargetFile, json.loads(text))
        return cls(folder=folder, **{field.name: getattr(found, field.name) for field in fields(found)})

    @property
    def table(self) -> Table:
        return table(self.folder / "compiler" / "operators.json")

    @property
    def patterns(self) -> Patterns:
        """The idioms that programs are searched for."""
        return pattern_table(self.folder / "compiler" / "patterns.json")

    @property
    def key(self) -> str:
        """What a built program depends on beside its source and the headers that this includes."""
        command = [self.compiler, *self.flags, *self.include, *self.link, *self.kernels]
        made_by = [*map(fingerprint.compiler, (self.compiler, *self.kernels[:1])), self.processor]
        libraries = fingerprint.digests(sorted(self.folder.glob("*.so")))
        return "\n".join([*command, *made_by, *libraries, self.table.digest])

    @property
    def processor(self) -> str:
        """What code is made for, where the flags leave it to the machine that compiles; else ""."""
        if "-arch=native" in (*self.flags, *self.kernels):
            device = torch.get_device_module()
            return f"{device.get_device_name()} {device.get_device_capability()}"
        return fingerprint.processor(self.flags)

    def headers(self, source: str) -> list[Path]:
        """The headers of the project and of the vendor that a source includes, directly or not."""
        return fingerprint.headers(source, self.flags, self.include)

    def emit(self, program: Program, watched: Sequence[View]) -> Emitted:
        """The program as source, and what load() must know of it. `watched` are views that are inspected meanwhile.

        Raises KeyError where a size follows from something that is no argument.
        """
        return emit(program, self.table, watched)

    def load(self, emitted: Emitted, library: Path) -> Any:
        """What runs a built program: run(list) -> list; to look on it has view(n), instructions() and set_watch(f)."""
        from torch_dipu import _native

        return _native.load().CompiledProgram({**emitted.specification, "library": str(library)})

    def command(self, source: Path, library: Path) -> list[str]:
        """The compiler's call that makes a shared library of a source; with `-c`, where kernels are compiled apart."""
        return [self.compiler, *self.flags, *self._includes, str(source), "-o", str(library), *self._links]

    def build(self, source: Path, library: Path) -> None:
        """Raises BuildFailed."""
        if not self.kernels:
            return _run(self.command(source, library), source)
        # The host's part is there before the kernels are.
        code, rest, embedded = (source.with_suffix(suffix) for suffix in (".fatbin", ".o", ".s"))
        with ThreadPoolExecutor(1) as beside:
            kernels = beside.submit(_run, [*self.kernels, *self._includes, str(source), "-o", str(code)], source)
            _run([*self.command(source, rest), "-c"], source)
            kernels.result()
        write_text(embedded, _EMBEDDED.replace("{file}", json.dumps(str(code), ensure_ascii=False)))
        linked = [self.compiler, "-shared", "-Wl,-Bsymbolic", str(rest), str(embedded), "-o", str(library)]
        return _run([*linked, *self._links], source)

    @property
    def _includes(self) -> list[str]:
        return [f"-I{folder}" for folder in self.include]

    @property
    def _links(self) -> list[str]:
        own = ["-Xlinker", f"-rpath,{self.folder}"] if self.suffix == ".cu" else [f"-Wl,-rpath,{self.folder}"]
        return [*self.link, *own]


# The kernels, by the name that compiler/kernels_apart.h has for them.
_EMBEDDED = """\
    .section .rodata
    .globl diopi_program_kernels
    .hidden diopi_program_kernels
    .balign 16
diopi_program_kernels:
    .incbin {file}
    .section .note.GNU-stack,"",%progbits
"""


def _run(command: Sequence[str], source: Path) -> None:
    """Raises BuildFailed."""
    compiler = command[0]
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        reason = f"the compiler '{compiler}' cannot be started: {error.strerror}; install it, or put it on PATH"
        raise BuildFailed(reason) from None
    if run.returncode != 0:
        raise BuildFailed(f"{compiler} refused {source}:\n{run.stderr}")
