"""The packages of the environment by version and hash: constraints/torch-<release>.txt, one for each release of torch.

    make constraints        resolves them anew; ARGS='--wheels FOLDER' also admits other builds of torch that lie there
    make setup              installs them, after the torch that is in the environment; TORCH=2.12 where there is none

What only a build of torch for CUDA needs is installed if the torch of the environment asks for it.
"""

import argparse
import hashlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "constraints"
RELEASES = ("2.11", "2.12", "2.13", "2.14", "2.15")
GROUPS = ("conformance", "droplet", "test", "dev", "docs")  # of pyproject.toml
BUILD = ("setuptools>=77", "wheel>=0.45", "ninja>=1.11", "scikit-build-core>=0.10")  # of this checkout
_PYTHON = "3.11"  # the oldest that is admitted
_US = "this project"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One package: its version, the hashes of its files, and who needs it."""

    name: str
    version: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]  # names of packages; "" for this checkout

    def __str__(self) -> str:
        needed = ", ".join(name or _US for name in self.needed_by)
        lines = (f"{self.name}=={self.version}", *(f"    --hash=sha256:{value}" for value in self.hashes))
        return " \\\n".join(lines) + f"\n    # via {needed}\n"


def entries(text: str) -> dict[str, Entry]:
    """The packages in the text of a file of constraints, by name."""
    found = (_entry(part) for part in re.split(r"^(?=\w)", text, flags=re.MULTILINE) if "==" in part)
    return {entry.name: entry for entry in found}


def _entry(text: str) -> Entry:
    name, _, rest = text.partition("==")
    needed = re.findall(rf"{_US}|{_NAME.pattern}", text.partition("# via")[2])
    return Entry(
        name=canonical(name),
        version=rest.split()[0],
        hashes=tuple(re.findall(r"sha256:([0-9a-f]{64})", text)),
        needed_by=tuple("" if name == _US else canonical(name) for name in needed),
    )


def canonical(name: str) -> str:
    """A name of a package as registries compare it, e.g. "jinja2" of "Jinja2" """
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(locked: Mapping[str, Entry], of_torch: Iterable[str]) -> list[Entry]:
    """What to install beside a torch that asks for these packages: what this checkout needs, and what those need."""
    reached = {"", *of_torch}
    while more := {
        entry.name
        for entry in locked.values()
        if entry.name not in reached and reached.intersection(entry.needed_by) - {"torch"}
    }:
        reached |= more
    return [entry for entry in locked.values() if entry.name in reached and entry.name != "torch"]


def required_by(package: str) -> list[str]:
    """The packages that an installed one asks for, but for its extras."""
    found = (_NAME.match(line) for line in metadata.requires(package) or () if "extra ==" not in line)
    return [canonical(match[0]) for match in found if match]


def _release(version: str) -> str:
    """e.g. "2.13" of "2.13.0+cpu" """
    return ".".join(version.split(".")[:2])


def install(release: str, options: Sequence[str]) -> None:
    """Installs torch of this release where there is none, and all else, as pip's options say. Raises SystemExit."""
    try:
        release = _release(metadata.version("torch"))
        locked = _locked(release)
    except metadata.PackageNotFoundError:
        locked = _locked(release)
        _install_torch(locked["torch"], options)
    done = _pip(wanted(locked, required_by("torch")), *options)
    if done.returncode:
        sys.exit(done.returncode)


def _install_torch(torch: Entry, options: Sequence[str]) -> None:
    """The build for CPUs where there is one that was admitted: this Python's index has it, or a folder of pip's."""
    alone = replace(torch, version=f"{torch.version}+cpu")
    offered = _pip([alone], "--dry-run", "--quiet", stderr=subprocess.DEVNULL)
    done = _pip([torch if offered.returncode else alone], *options)
    if done.returncode:
        sys.exit(done.returncode)


def _locked(release: str) -> dict[str, Entry]:
    path = FOLDER / f"torch-{release}.txt"
    if not path.is_file():
        known = ", ".join(sorted(path.stem.removeprefix("torch-") for path in FOLDER.glob("torch-*.txt")))
        sys.exit(f"there are no constraints for torch {release}; there are those of {known}")
    return entries(path.read_text(encoding="utf-8"))


def _pip(chosen: Sequence[Entry], *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes", "--no-deps"]
    command += [*options, "-r", "/dev/stdin"]
    return subprocess.run(command, input="".join(map(str, chosen)), text=True, check=False, **more)


def write(wheels: Path | None) -> None:
    """Resolves the packages beside each release of torch. Raises SystemExit."""
    for release in RELEASES:
        path = FOLDER / f"torch-{release}.txt"
        locked = entries(resolved([f"torch=={release}.*"], "--generate-hashes", "--python-platform", "linux"))
        earlier = entries(path.read_text(encoding="utf-8")) if path.is_file() else {}
        text = "".join(str(_with_builds(entry, earlier, wheels)) for entry in locked.values())
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def resolved(more: Sequence[str], *options: str) -> str:
    """What the requirements of this checkout come to, in the form of pip's requirements. Raises SystemExit."""
    groups = [word for group in GROUPS for word in ("--extra", group)]
    with NamedTemporaryFile("w", suffix=".in", encoding="utf-8") as own:
        own.write("\n".join((*BUILD, *more)))
        own.flush()
        command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "pyproject.toml", *groups, own.name]
        command += ["--quiet", "--no-header", "--no-config", "--python-version", _PYTHON, *options]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{shlex.join(command)}: {done.stderr}")
    return re.sub(r"diopigen \(pyproject.toml\)|-r \S+\.in", _US, done.stdout)


def _with_builds(entry: Entry, earlier: Mapping[str, Entry], wheels: Path | None) -> Entry:
    """Of torch also the builds that were admitted before, and those in the folder."""
    if entry.name != "torch":
        return entry
    before = earlier.get(entry.name)
    kept = before.hashes if before is not None and before.version == entry.version else ()
    found = () if wheels is None else _hashes(wheels, f"torch-{entry.version}")
    hashes = tuple(dict.fromkeys((*entry.hashes, *kept, *found)))
    return replace(entry, hashes=hashes)


def _hashes(folder: Path, start: str) -> Iterator[str]:
    for path in sorted(folder.glob("*.whl")):
        if re.match(rf"{re.escape(start)}[+-]", path.name):
            yield hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """The exit code is pip's where it fails, 1 if a resolution does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="resolve the packages anew")
    writing.add_argument("--wheels", type=Path, help="a folder with other builds of torch that are admitted, too")
    installing = commands.add_parser("install", help="install them into this Python's environment")
    installing.add_argument("--torch", default="2.13", metavar="RELEASE", help="of torch where there is none (2.13)")
    installing.add_argument("more", nargs="*", help="after --: options for pip")
    options = parser.parse_args()
    if options.command == "write":
        write(options.wheels)
    else:
        install(options.torch, options.more)
    return 0


if __name__ == "__main__":
    sys.exit(main())
