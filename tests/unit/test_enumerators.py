"""The words that schemas use for enumerators are those of runtime.yaml."""

from diopigen import pipeline
from diopigen.diagnostics import Diagnostics
from diopigen.model.type import ENUMERATORS, Value
from diopigen.project import Project

ENUMS = {
    Value.REDUCTION: "diopiReduction_t",
    Value.ROUND_MODE: "diopiRoundMode_t",
    Value.MEMORY_FORMAT: "diopiMemoryFormat_t",
}


def test_words_and_values_agree(checkout: Project) -> None:
    program = pipeline.run(checkout, Diagnostics())
    assert program is not None
    for value, words in ENUMERATORS.items():
        enum = program.runtime.enum(ENUMS[value])
        assert enum is not None
        names = [e.name for e in enum.enumerators if not e.name.endswith("END")]
        assert list(words.values()) == names
        assert [e.value for e in enum.enumerators][: len(names)] == list(range(len(names)))
