"""What is told of a run: the table by kind and by file, the survivors, JSON."""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.mutants.score import Score

WANTED = 0.99  # of the mutants that are not equivalent


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All scores of one run."""

    scores: tuple[Score, ...]
    seconds: float

    @property
    def counted(self) -> list[Score]:
        return [s for s in self.scores if not s.mutant.equivalent]

    @property
    def survivors(self) -> list[Score]:
        return [s for s in self.counted if not s.by]

    @property
    def contradicted(self) -> list[Score]:
        """Mutants that are listed as equivalent, and are not."""
        return [s for s in self.scores if s.mutant.equivalent and s.by]

    @property
    def share(self) -> float:
        counted = self.counted
        return 1.0 if not counted else 1.0 - len(self.survivors) / len(counted)

    @property
    def exit_code(self) -> int:
        return 1 if self.share < WANTED or self.contradicted else 0

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "killed": len(self.counted) - len(self.survivors),
            "mutants": len(self.counted),
            "equivalent": len(self.scores) - len(self.counted),
            "seconds": round(self.seconds, 1),
            "scores": [
                {
                    "name": s.mutant.name,
                    "kind": s.mutant.kind,
                    "source": s.mutant.source,
                    "place": str(s.mutant.span),
                    "equivalent": s.mutant.equivalent,
                    "asked": s.asked,
                    "by": s.by,
                    "verdict": s.verdict,
                    "message": s.message,
                }
                for s in self.scores
            ],
        }


def write(report: Report, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report.document(), indent=1) + "\n", encoding="utf-8")


def shown(report: Report) -> str:
    """The text for a terminal."""
    lines = [
        *_table("kind", [(s.mutant.kind, bool(s.by)) for s in report.counted]),
        "",
        *_table("file", [(s.mutant.name.partition("/")[0], bool(s.by)) for s in report.counted]),
        "",
    ]
    for s in report.survivors:
        lines.append(f"survived {s.asked} cases: {s.mutant.name} ({s.mutant.span})")
        lines.append(f"  {s.mutant.before!r} -> {s.mutant.after!r}")
    for s in report.contradicted:
        lines.append(f"{s.mutant.span}: '{s.mutant.name}' is listed as equivalent, but {s.by} fails: {s.message}")
    killed = len(report.counted) - len(report.survivors)
    equivalent = len(report.scores) - len(report.counted)
    lines.append(
        f"{killed} of {len(report.counted)} mutants die ({100 * report.share:.1f}%, wanted {100 * WANTED:.0f}%);"
        f" {equivalent} are equivalent; {report.seconds:.0f} s"
    )
    return "\n".join(lines)


def _table(title: str, facts: list[tuple[str, bool]]) -> list[str]:
    all_, dead = Counter(name for name, _ in facts), Counter(name for name, died in facts if died)
    width = max([len(title), *map(len, all_)])
    return [f"{title:{width}}  killed", *(f"{n:{width}}  {dead[n]:3} of {all_[n]:3}" for n in sorted(all_))]
