"""The shape of patterns.yaml."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel

from diopigen.source.schema.surface import OpName, Text, Word

Number = int | float | bool | None


def _listed(value: Any) -> Any:
    """One value stands for a list of one."""
    return value if isinstance(value, list) else [value]


class _Surface(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)


class SpellingSurface(_Surface):
    """A row under `match:` that also decides inputs."""

    written: Annotated[Text, Field(description="an expression over the inputs and the parts")]
    sets: dict[Word, Number] = Field(description="inputs that this spelling decides")


class LaunchesSurface(_Surface):
    """How many kernels a program of the idiom alone launches."""

    forward: int = Field(description="in the forward pass")
    backward: int | None = Field(default=None, description="in the backward pass")


Expressions = Annotated[
    list[Text], BeforeValidator(_listed, json_schema_input_type=Text | list[Text]), Field(min_length=1)
]


class PatternSurface(_Surface):
    """An idiom of programs."""

    doc: Text = Field(description="what the idiom computes, in sentences")
    by: list[OpName] = Field(default_factory=list, description="ops that serve it, the first that takes a dtype")
    own: bool = Field(default=False, description="it pays only where those functions are no portable kernels")
    inputs: dict[Word, Text] = Field(min_length=1, description="what it is computed from, as args of an op")
    without_gradient: list[Word] = Field(default_factory=list, description="inputs that are constants of a program")
    where: dict[Word, str | list[str]] = Field(default_factory=dict, description="what each element type may be")
    parts: dict[Word, Expressions] = Field(default_factory=dict, description="what spellings share, each in its ways")
    match: list[Text | SpellingSurface] = Field(min_length=1, description="the ways to write it")
    when: list[Text] = Field(default_factory=list, description="what must hold besides")
    becomes: Text | None = Field(default=None, description="what is computed instead; nothing: fused loops are best")
    launches: LaunchesSurface = Field(description="of a program that has nothing else")
    examples: list[dict[Word, list[int] | Number]] = Field(min_length=1, description="sizes and numbers for the tests")


class PatternFile(RootModel[dict[OpName, PatternSurface]]):
    """schemas/patterns.yaml."""
