"""What the last run into a folder read and found, for the next one to compare with; may be deleted at any time."""

import json
from dataclasses import dataclass
from pathlib import Path

from diopigen import diagnostics as findings
from diopigen.diagnostics import Diagnostic, Diagnostics
from diopigen.kept import read_checked, undamaged, write_checked
from diopigen.model import runtime
from diopigen.model.program import Program
from diopigen.model.runtime import Runtime
from diopigen.passes.contract.verify_kernels import Finding
from diopigen.project import Project
from diopigen.source.yaml.nodes import read_text
from diopigen.trees import Trees
from diopigen.vocabulary import dtype
from diopigen.vocabulary.dtype import DTypes

FILE = ".last.kept"  # beside the outputs
_VERSION = 1
_TREES = Trees((dtype, runtime, findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """A run without errors."""

    texts: dict[str, str]  # the files of schemas/ops by the names that messages give them
    dtypes: DTypes
    runtime: Runtime
    found: tuple[Diagnostic, ...]
    served: dict[str, str]  # e.g. {"diopiAdd": "generated"}: the origins of functions that the vendor has

    @classmethod
    def of(cls, program: Program, texts: dict[str, str], diagnostics: Diagnostics) -> "Last":
        return cls(
            texts=texts,
            dtypes=program.dtypes,
            runtime=program.runtime,
            found=tuple(d for d in diagnostics.found if d.code not in ("damaged-cache", "cache-damaged")),
            served={plan.symbol: plan.implementation.origin.value for plan in program.plans},
        )

    def explains(self, finding: Finding) -> bool:
        """Whether what one entry lacks is the name of another one."""
        names = [f"{name}:" for name in finding.about]
        texts = self.texts.values()
        return bool(names) and all(any(t.startswith(n) or f"\n{n}" in t for t in texts) for n in names)


def entries(project: Project) -> dict[str, str]:
    """The files of schemas/ops that can be read, by the names that messages give them."""
    folder, home = project.schemas / "ops", project.home
    named = ((path, path.relative_to(home).as_posix()) for path in sorted(folder.glob("*.yaml")))
    read = ((shown, read_text(path, shown, Diagnostics())) for path, shown in named)
    return {shown: text for shown, text in read if text is not None}


def read_last(path: Path, shown: str, diagnostics: Diagnostics) -> Last | None:
    """None where nothing is known; what is damaged is reported."""
    text = undamaged(lambda path: read_checked(path, _VERSION), path, shown, diagnostics)
    if text is None:
        return None
    tree, _, rest = text.partition("\n")
    dtypes, runtime_, found = _TREES.tree(tree)
    texts, served = json.loads(rest)
    return Last(texts=texts, dtypes=dtypes, runtime=runtime_, found=found, served=served)


def write_last(path: Path, last: Last) -> None:
    tree = _TREES.text((last.dtypes, last.runtime, last.found))
    write_checked(path, _VERSION, f"{tree}\n{json.dumps([last.texts, last.served])}")
