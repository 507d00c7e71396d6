"""A page for newcomers, followed literally: its files are written and its commands run, in the order of the page."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"(?:Write `(?P<file>[^`]+)`:\n\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A file to write, a command to run, or what the command before it prints."""

    file: str  # e.g. "functions/relu.cpp"; "" unless it is one
    language: str  # "sh" of commands, "" of what they print
    text: str


def steps(page: str) -> Iterator[Step]:
    """Of docs/`page`; each command is one of its own."""
    for block in _BLOCK.finditer((ROOT / "docs" / page).read_text(encoding="utf-8")):
        texts = block["text"].splitlines() if block["language"] == "sh" else [block["text"]]
        for text in texts:
            yield Step(file=block["file"] or "", language=block["language"], text=text)


def checkout(root: Path) -> Path:
    """This checkout at `root`, by links; what commands write beside them stays there."""
    (root / "build").mkdir(parents=True)
    for start, end in ((ROOT, root), (ROOT / "build", root / "build")):
        for path in start.iterdir():
            if path.name not in ("build", "conformance_results", "op_tools_results"):
                (end / path.name).symlink_to(path)
    return root


@dataclass(slots=True)
class Shell:
    """Runs commands one by one; where one leaves the folder or sets a variable, so do those after it."""

    folder: Path
    environment: dict[str, str] = field(default_factory=lambda: {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"})

    def run(self, command: str) -> tuple[int, str]:
        """The exit code and all that is printed."""
        read, write = os.pipe()
        with os.fdopen(read, encoding="utf-8") as after:
            done = subprocess.run(
                ["bash", "-c", f"trap 'env -0 >&{write}' EXIT\n{command}"],
                cwd=self.folder,
                env=self.environment,
                pass_fds=(write,),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=600,
                check=False,
            )
            os.close(write)
            self.environment = dict(line.split("=", 1) for line in after.read().split("\0") if line)
        self.folder = Path(self.environment["PWD"])
        return done.returncode, done.stdout
