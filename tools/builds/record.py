"""Keeps what a build took, and what the one before it took."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from . import ninja

FOLDER = Path("build") / "times"


@dataclass(frozen=True)
class Record:
    """One build of one folder."""

    folder: str  # its name, e.g. "droplet"
    began: int  # seconds since 1970
    wall: float  # seconds
    processor: float  # seconds, of all steps and their compilers
    units: dict[str, int]  # milliseconds of each unit that was made, by its source relative to the root, or its output

    @staticmethod
    def of(
        folder: Path, root: Path, before: dict[str, ninja.Entry], began: float, wall: float, processor: float
    ) -> "Record":
        """The record of what was made since ninja's log was `before`."""
        names = ninja.sources(folder, root)
        made = {output: entry for output, entry in ninja.log(folder).items() if before.get(output) != entry}
        units = {
            names.get(output) or ninja.relative(output, folder, root): entry.milliseconds
            for output, entry in sorted(made.items())
            if not output.endswith("cmake.verify_globs")  # looks for new files: nothing is made
        }
        return Record(folder.name, round(began), round(wall, 1), round(processor, 1), dict(sorted(units.items())))


def write(record: Record, root: Path) -> None:
    """Writes build/times/build-<folder>.json if anything was made; the one that was there becomes the previous."""
    if not record.units:
        return
    path = root / FOLDER / f"build-{record.folder}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.replace(path.with_suffix(".previous.json"))
    content = {name: value for name, value in asdict(record).items() if name != "folder"}
    path.write_text(json.dumps(content, indent=0) + "\n", encoding="utf-8")
