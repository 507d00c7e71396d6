"""What a unit is expected to take: as in this folder before, else as recorded in the repository."""

import json
from collections.abc import Callable
from pathlib import Path

from .ninja import log, planned, program, sources
from .remaining import weights

TABLE = Path("benchmarks") / "results" / "build_times.json"  # written by `make times`


def expected(folder: Path, root: Path) -> dict[str, float]:
    """The seconds of each output that a build of `folder` will make, as far as that can be told beforehand.

    A folder that was never configured is expected to take what the recorded build of its name took.
    """
    table = recorded(root)
    ninja = program(folder)
    if ninja is None:
        return table.get(folder.name, {})
    return weights(planned(ninja, folder), _known(folder, root, table))


def _known(folder: Path, root: Path, table: dict[str, dict[str, float]]) -> Callable[[str], float | None]:
    before = log(folder)
    names = sources(folder, root)
    others = {name: seconds for build in reversed(table.values()) for name, seconds in build.items()}
    units = {**others, **table.get(folder.name, {})}

    def known(output: str) -> float | None:
        entry = before.get(output)
        return units.get(names.get(output, output)) if entry is None else entry.milliseconds / 1000

    return known


def recorded(root: Path) -> dict[str, dict[str, float]]:
    """The table in the repository: of each build folder by name, the seconds of its units; empty if there is none."""
    try:
        builds = json.loads((root / TABLE).read_text(encoding="utf-8"))["builds"]
        return {name: build["units"] for name, build in builds.items()}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
