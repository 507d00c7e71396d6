"""The suites that can be run, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diopigen.text import suggestion
from op_tools.torch_tests.opinfo.entries import NAME as OPINFO

_OWN = Path(__file__).resolve().parent / "suites"
# The files of PyTorch's folder of tests that a backend is held to.
USUAL = (
    "test_view_ops",
    "test_type_promotion",
    "test_reductions",
    "test_indexing",
    "test_autograd",
    "test_serialization",
)


class NoSuite(ValueError):
    """There is no suite of a name; the text says which there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A file of tests, or torch's samples."""

    name: str  # e.g. "view_ops", "opinfo"
    path: Path | None = None  # None: torch's samples


def own(names: Sequence[str]) -> tuple[Suite, ...]:
    """The suites over the databases in torch's wheel that are named; all where none is. Raises NoSuite."""
    known = [*_stems(_OWN), OPINFO]
    for name in names:
        if name not in known:
            raise NoSuite(f"there is no suite '{name}'; the suites are {', '.join(known)}")
    return tuple(
        Suite(name=name, path=None if name == OPINFO else _OWN / f"{name}.py") for name in dict.fromkeys(names or known)
    )


def of_pytorch(folder: Path, names: Sequence[str]) -> tuple[Suite, ...]:
    """Files of PyTorch's folder of tests, e.g. "nn/test_init"; the usual ones where none is named. Raises NoSuite."""
    top = _stems(folder)
    usual = [name for name in USUAL if name in top]
    if not names and not usual:
        raise NoSuite(f"'{folder}' has none of {', '.join(USUAL)}: it is not the folder `test` of PyTorch")
    for name in names:
        if not (folder / f"{name}.py").is_file():
            below = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/**/test_*.py"))
            hint = suggestion(name, [*top, *sorted(below)]) or f"it has {', '.join(top)}"
            raise NoSuite(f"'{folder}' has no file '{name}.py'; {hint}")
    return tuple(Suite(name=name, path=folder.resolve() / f"{name}.py") for name in dict.fromkeys(names or usual))


def _stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
