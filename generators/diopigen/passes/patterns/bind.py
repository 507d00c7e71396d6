"""Text to model for schemas/patterns.yaml, which is read where it changed."""

from pathlib import Path

from diopigen import diagnostics as findings
from diopigen.diagnostics import Diagnostics
from diopigen.kept import KeptTexts
from diopigen.model import compose, expr, op, pattern, type
from diopigen.model.pattern import Pattern
from diopigen.source.yaml.nodes import read_text
from diopigen.trees import Trees, remembered
from diopigen.vocabulary import dtype
from diopigen.vocabulary.dtype import DTypes


def bind_patterns(
    path: Path, shown: str, dtypes: DTypes, diagnostics: Diagnostics, kept: KeptTexts | None = None
) -> tuple[Pattern, ...]:
    """The idioms of the file, one with an error left out; as `kept` has them where the file is as it was."""
    text = read_text(path, shown, diagnostics)
    if text is None:
        return ()

    def read(found: Diagnostics) -> tuple[Pattern, ...]:
        from diopigen.passes.patterns.read import read_patterns

        return read_patterns(text, shown, dtypes, found)

    trees = Trees((pattern, expr, op, type, compose, dtype, findings))
    return remembered(kept, KeptTexts.key(dtypes, shown, text), trees, diagnostics, read)
