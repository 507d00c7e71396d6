"""The figures that are kept in benchmarks/results; those of builds tell later builds how much time is left."""

import json
from pathlib import Path
from typing import Any

from tools.times.records import Build, Tests

BUILDS = "build_times.json"
TESTS = "test_times.json"
_SHORT = 0.5  # seconds: shorter tests and fixtures are not kept
_WHOLE = 0.9  # of the units that are known: such a build is no addition to an earlier one


def keep_builds(builds: dict[str, Build], facts: dict[str, str], folder: Path) -> None:
    """Writes build_times.json: builds by name, with the seconds of each unit.

    A build that made only some of the units leaves the figures of the others as they are.
    """
    path = folder / BUILDS
    known = _known(path).get("builds", {})
    merged = {name: _merged(build, known.get(name)) for name, build in builds.items()}
    about = "seconds of each build, and of each compiled unit while others were compiled beside it; wall time"
    _write(path, about, facts, {"builds": dict(sorted({**known, **merged}.items()))})


def keep_tests(tests: Tests, facts: dict[str, str], folder: Path) -> None:
    """Writes test_times.json: test files (seconds, processor seconds) and fixtures (also how often they were made)."""
    files = {name: _rounded(*values) for name, values in sorted(tests.files.items()) if values[0] >= _SHORT}
    fixtures = {
        name: [*_rounded(wall, processor), count]
        for name, (wall, processor, count) in sorted(tests.fixtures.items())
        if wall >= _SHORT
    }
    about = "test files: seconds and processor seconds; fixtures: these, and how often they were made"
    _write(folder / TESTS, about, facts, {"wall": round(tests.wall, 1), "files": files, "fixtures": fixtures})


def _merged(build: Build, known: dict[str, Any] | None) -> dict[str, Any]:
    units = {name: round(seconds, 1) for name, seconds in build.units.items()}
    if known is None or len(units) >= _WHOLE * len(known["units"]):
        return {
            "wall": round(build.wall, 1),
            "processor": round(build.processor, 1),
            "units": dict(sorted(units.items())),
        }
    return {**known, "units": dict(sorted({**known["units"], **units}.items()))}


def _rounded(*values: float) -> list[float]:
    return [round(value, 1) for value in values]


def _known(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def _write(path: Path, about: str, facts: dict[str, str], content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"benchmark": path.stem, "about": about, "facts": facts, **content}
    path.write_text(_json(document) + "\n", encoding="utf-8")


def _json(value: Any, depth: int = 0) -> str:
    """JSON with a line for each name; lists stay in one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    lines = (f"{' ' * (depth + 1)}{json.dumps(name)}: {_json(entry, depth + 1)}" for name, entry in value.items())
    return "{\n" + ",\n".join(lines) + "\n" + " " * depth + "}"
